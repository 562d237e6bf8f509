"""Find recipes for issues: `python benchmarks/retrieval/issues/find.py [PACKAGE ...]` writes `recipes.json`.

It breaks functions of each package in several ways, until a test fails that passed before. All packages take half an
hour. Needs Python 3.12 or newer.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))

from retrieval.issues.corpus import RECIPES, TESTS, failures_of, run_tests
from retrieval.packages import UnavailableError, sdist

OF_PACKAGE = 12
"""Issues of each package; half of them have no frame of the answer's file in the traceback."""
_SPARE = 4
_KEYS = ("path", "name", "line", "node", "test")


def main() -> None:
    """Find recipes for some packages, by default for all, and write them."""
    recipes = json.loads(RECIPES.read_text()) if RECIPES.exists() else {}
    for package in sys.argv[1:] or TESTS:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, package)
            shutil.copytree(sdist(package), root)
            try:
                found = run_tests(package, root, TESTS[package][0].split(), {"RIPWRAP_FIND": str(OF_PACKAGE + _SPARE)})
            except UnavailableError as error:
                print(f"SKIPPED: {package}: {error}", file=sys.stderr)
                continue
            chosen: dict[bool, list[dict[str, object]]] = {True: [], False: []}
            for recipe, failure in failures_of(package, root, found):
                chosen[failure.in_traceback].append({key: recipe[key] for key in _KEYS})
        half = OF_PACKAGE // 2
        recipes[package] = sorted(
            (*chosen[True][:half], *chosen[False][:half]), key=lambda one: (one["path"], one["line"])
        )
        rows = (
            f"  {json.dumps(package)}: [\n    " + ",\n    ".join(map(json.dumps, of)) + "\n  ]"
            for package, of in sorted(recipes.items())
        )
        RECIPES.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
