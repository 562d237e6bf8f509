"""Write the SBOM of the wheel, in CycloneDX's format: `python scripts/sbom.py`.

The wheel has the SBOM in `ripwrap-….dist-info/sboms/` (PEP 770). The wheel contains no program. The SBOM names the
packages that ripwrap needs, and each release of rg that it may install, with its pinned hash.
"""

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from ripwrap.binary.platforms import BASE_URL, PINS, asset_name

ROOT = Path(__file__).parent.parent
SBOM = ROOT / "docs" / "reference" / "ripwrap.cdx.json"


def sbom() -> str:
    """Return the SBOM as JSON; it has no time and no random number, so that equal sources give equal wheels."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = project["name"], project["version"]
    own = f"pkg:pypi/{name}@{version}"
    needed = [_package(re.split(r"[^\w.-]", line)[0]) for line in project["dependencies"]]
    described = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": name,
                "version": version,
                "description": project["description"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": own,
            }
        },
        "components": [*needed, *(_release(*pin) for pin in PINS)],
        "dependencies": [{"ref": own, "dependsOn": [package["bom-ref"] for package in needed]}],
    }
    return json.dumps(described, indent=2) + "\n"


def _package(name: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}"
    return {"type": "library", "bom-ref": purl, "name": name, "scope": "required", "purl": purl}


def _release(version: str, target: str) -> dict[str, Any]:
    asset = asset_name(version, target)
    return {
        "type": "application",
        "bom-ref": asset,
        "name": "ripgrep",
        "version": version,
        "scope": "optional",
        "purl": f"pkg:github/BurntSushi/ripgrep@{version}#{asset}",
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"{BASE_URL}/{version}/{asset}",
                "hashes": [{"alg": "SHA-256", "content": PINS[version, target]}],
            }
        ],
    }


def faults(text: str) -> str:
    """Return the error of CycloneDX's schema for an SBOM; empty if the SBOM is valid."""
    from cyclonedx.schema import SchemaVersion  # `nox -s release` installs it
    from cyclonedx.validation.json import JsonStrictValidator

    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    return "" if error is None else str(error)


def main() -> int:
    """Write the SBOM, or check the file; the exit code is 1 if it is out of date or not valid."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the file, and write nothing")
    parser.add_argument("--validate", action="store_true", help="also check the text against CycloneDX's schema")
    arguments = parser.parse_args()
    text = sbom()
    if arguments.validate and (error := faults(text)):
        print(error, file=sys.stderr)
        return 1
    if not arguments.check:
        SBOM.write_text(text, "utf-8")
    elif not SBOM.exists() or SBOM.read_text("utf-8") != text:
        print(f"{SBOM.relative_to(ROOT)} is out of date; run python scripts/sbom.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
