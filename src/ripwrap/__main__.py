"""`python -m ripwrap` and the `ripwrap` command."""

import sys


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        from ripwrap.cli import run
    except ModuleNotFoundError as error:
        if error.name not in ("cyclopts", "rich"):
            raise
        print(f'ripwrap: the command line needs {error.name}: pip install "ripwrap[cli]"', file=sys.stderr)
        sys.exit(2)
    sys.exit(run())


if __name__ == "__main__":
    main()
