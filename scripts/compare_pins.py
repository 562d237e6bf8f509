"""Compare the package's pinned hashes with a list of releases: `python scripts/compare_pins.py releases.json`.

docs/how-to/verify.md shows the format of the list.
"""

import json
import sys
from pathlib import Path

from ripwrap.binary.platforms import PINS, asset_name


def main(path: Path) -> int:
    """Print each difference; the exit code is 1 if there is one."""
    listed = {
        (version, asset["target"]): (name, asset["sha256"])
        for version, assets in json.loads(path.read_text()).items()
        for name, asset in assets.items()
    }
    differences = [f"not in the package: {key}" for key in listed.keys() - PINS.keys()]
    differences += [f"not in the list: {key}" for key in PINS.keys() - listed.keys()]
    for key in listed.keys() & PINS.keys():
        if listed[key] != (asset_name(*key), PINS[key]):
            differences.append(f"different: {key}: {listed[key]} and {asset_name(*key), PINS[key]}")
    print("\n".join([*sorted(differences), f"{len(listed)} pins compared, {len(differences)} differences"]))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
