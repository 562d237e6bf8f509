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

from retrieval.issues.corpus import RECIPES, TESTS, failures_of, replay, run_tests
from retrieval.packages import UnavailableError, sdist

OF_PACKAGE = 12
"""Issues of each package; half of them have no frame of the answer's file in the traceback."""
_SPARE = 4
_KEYS = ("path", "name", "line", "node", "test")


def find(package: str) -> list[dict[str, object]]:
    """Return recipes for a package, whose tests fail again when they run alone.

    Raises:
        UnavailableError: The package cannot be downloaded, or its tests do not run.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as second:
        root = Path(folder, package)
        shutil.copytree(sdist(package), root)
        found = run_tests(package, root, TESTS[package][0].split(), {"RIPWRAP_FIND": str(OF_PACKAGE + _SPARE)})
        recipes = [{key: recipe[key] for key in _KEYS} for recipe, _ in failures_of(package, root, found)]
        failing = replay(package, recipes, Path(second))
    chosen: list[dict[str, object]] = []
    for in_traceback in (True, False):
        of_kind = [recipe for recipe, failure in failing if failure.in_traceback == in_traceback]
        chosen += [{key: recipe[key] for key in _KEYS} for recipe in of_kind[: OF_PACKAGE // 2]]
    return chosen


def main() -> None:
    """Find recipes for some packages, by default for all, and write them."""
    recipes = json.loads(RECIPES.read_text()) if RECIPES.exists() else {}
    for package in sys.argv[1:] or TESTS:
        try:
            recipes[package] = find(package)
        except UnavailableError as error:
            print(f"SKIPPED: {package}: {error}", file=sys.stderr)
    rows = (
        f"  {json.dumps(package)}: [\n    " + ",\n    ".join(map(json.dumps, of_package)) + "\n  ]"
        for package, of_package in sorted(recipes.items())
    )
    RECIPES.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
