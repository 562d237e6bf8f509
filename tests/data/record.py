"""Record the output of each rg of the matrix for a small tree of unusual files: `python tests/data/record.py`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from support import rgs  # noqa: E402 - it lies beside this folder

FILES = {
    b"plain.txt": b"one needle\nnothing\nneedle and needle\nafter\n\nfar\nneedle",
    b"crlf.txt": b"needle\r\nrest\r\n",
    b"latin1.txt": b"caf\xe9 needle\n",
    b"odd \xff name.txt": b"needle\n",
    b"unicode.txt": "naïve \U0001f600 needle\u2028still the same line\n".encode(),
    b"bom.txt": b"\xef\xbb\xbfneedle\n",
    b"late-nul.txt": b"needle\n" + b"x" * 70_000 + b"\0\nneedle\n",
    b"quotes.txt": b'"needle"\t\\ \x01 },"data":{"bytes":"\n',
}
SEARCHES = {
    "context": ["--context=1", "--regexp=needle"],
    "multiline": ["--multiline", "--regexp=needle\\n\\w+"],
    "inverted": ["--invert-match", "--regexp=needle", "--glob=plain.txt", "--context=1"],
}


def main() -> None:
    """Write `<search>-<version>.jsonl` for every search and rg."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in FILES.items():
            (Path(folder) / os.fsdecode(name)).write_bytes(content)
        for version in rgs.VERSIONS:
            for search, arguments in SEARCHES.items():
                argv = [str(rgs.find_or_fetch(version)), "--no-config", "--json", "--sort=path", *arguments, "--", "."]
                output = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True)
                (HERE / f"{search}-{version}.jsonl").write_bytes(output.stdout)


if __name__ == "__main__":
    main()
