"""An index that another process has open is rebuilt in place, because Windows refuses to remove its file."""

import subprocess
import sys
from pathlib import Path

from ripwrap import sync

HOLDER = """
import sys
from ripwrap import sync
with sync.Index(sys.argv[1], location=sys.argv[2], chunker="windows") as index:
    for _ in sys.stdin:
        print(sorted({chunk.path for chunk in index.search("needle")}), flush=True)
"""


def ask(holder: "subprocess.Popen[str]") -> str:
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    return holder.stdout.readline().strip()


def test_index_is_rebuilt_while_another_process_has_it_open(tmp_path: Path) -> None:
    root, location = tmp_path / "root", tmp_path / "index"
    root.mkdir()
    (root / "a.py").write_text("needle a\n")
    command = [sys.executable, "-c", HOLDER, str(root), str(location)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert ask(holder) == "['a.py']"
            (root / "b.py").write_text("needle b\n")
            with sync.Index(root, location=location, chunker="windows") as index:
                assert index.refresh(rebuild=True).added == 2
                assert index.check().ok
            (root / "c.py").write_text("needle c\n")
            assert ask(holder) == "['a.py', 'b.py', 'c.py']"
        finally:
            holder.kill()
