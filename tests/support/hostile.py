"""Two hundred hostile arguments, sent to every tool: `python hostile.py ROOT RG`."""

import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ripwrap import sync
from support.effort import times

BEGIN, END = "/ripwrap-begins-here", "/ripwrap-ends-here"
"""Missing paths that the walk looks up at its start and end, to mark them in a trace."""

PASSWORD = "hunter2"
"""An invalid rule in ignore files outside the root, which rg quotes in its error."""

PATHS = (
    *("..", "../", "../..", "../outside", "../outside/secret", "./../outside", "a/../../outside", "../root-not"),
    *("../root-not/x", "/", "//", "///etc/passwd", "/etc/passwd", "/etc/shadow", "/etc", "/root", "/home"),
    *("/proc/self/environ", "/proc/1/root", "/proc/self/cwd", "/proc/self/root/etc/passwd", "/dev/stdin"),
    *("/dev/fd/0", "/dev/tty", "/sys", "/tmp", "/var/log", "/usr", "~", "~/", "~/.ssh/id_rsa", "~root"),
    *("~root/.bashrc", "~nobody", "$HOME", "${HOME}", "%USERPROFILE%", "`pwd`", "$(id)", "out", "out/", "out/secret"),
    *("out/../secret", "file", "deep/out", "deep/out/secret", "up", "up/outside", "up/..", "abs", "abs/x", "loop"),
    *("loop/loop", "gone", "chain", "chain/secret", "in", "in/..", "in/../..", "in/../../outside"),
    *("loop/../out", "loop/../out/secret", "loop/../file"),
    *("a/in/../../../outside", "..a", "..a/..", "...", ".../..", "a/..", "a/../..", ". .", " ..", ".. ", "..\t"),
    *("\t..", "a/./../../outside", "a//..//..//outside", "..\\", "..\\outside", "C:\\", "C:/Windows", "C:outside"),
    *("\\\\server\\share", "\\\\?\\C:\\", "//server/share", "file:///etc/passwd", "%2e%2e/outside", "..%2foutside"),
    *("..%c0%afoutside", "\uff0e\uff0e/outside", "\u2024\u2024/outside", "..\u2215outside", "..;/outside", "-", "--"),
    *("--files", "--pre=sh", "-f/etc/passwd", "--ignore-file=/etc/passwd", "@/etc/passwd", "a\nb", "a\r", "\x1b[2J"),
    *("a\0b", "\0", "", " ", "*", "**", "../*", "../**", "{..,a}", "[.][.]", "?", "a" * 300, "a/" * 2100),
    *("../" * 300, "/." * 500, "\ud800", "\udcff", "\udcff/../..", "caf\u00e9", "cafe\u0301/../..", "\u202e"),
    *("\ufeff..", "nul", "con", "aux.txt", "a:stream", "/proc/self/fd", "/proc/thread-self/root", "/dev/shm", "/run"),
    *("/mnt", "/boot", "./.", "a/b/../../../root/../outside"),
)  # fmt: skip

PATTERNS = (
    *("secret", "root:", "", "(", "[", "*", "\\", "(?", "a{1,", "a{99999999}", "(a*)*b"),
    *("((((((((((a*)*)*)*)*)*)*)*)*)*", "x\0", "\ud800", "-f/etc/passwd", "--pre=cat", "--files", "--", "-"),
    *("--hostname-bin=sh", "-z", "--config", "@/etc/passwd", "file:///etc/passwd", "$(cat /etc/passwd)", "`id`"),
    *("; id", "| cat", "> /tmp/x", "&& id", "\n--pre=sh", "a\nb", "\\n", "\r", "\x1b[2J", "\u2028", "(?i)SECRET"),
    *("(?-u:\\xff)", "\\p{Greek}", "\\pQ", "(?P<n>x)(?P<n>y)", "\\1", "(?=x)", "(?<=x)", "\\K", "^$", ".*", "a|"),
    *("|", "\u00e9", "\U0001f600", "x" * 5000, "(" * 300, "[" * 300, "." * 300, "\\" * 301, "!", "!*", "../*"),
    *("../outside/**", "/etc/**", "**/secret", "../../**", "{/etc/passwd,..}", "{a,{b,{c}}}", "[!a]", "[^"),
    *("include:py", "~/*", "./../*", "*.{py", "a,b", "!../**"),
)  # fmt: skip


def furnish(yard: Path) -> Path:
    """Create a root with links to outside, next to files that no tool may read, and return the root."""
    root = yard / "root"
    for name in (
        "root/a/b/file.py",
        "root/..a/file",
        "root/.../file",
        "root/deep/file",
        "outside/secret",
        "root-not/x",
        "home/.ssh/id_rsa",
    ):
        (yard / name).parent.mkdir(parents=True, exist_ok=True)
        (yard / name).write_text("secret\n")
    (yard / "outside" / "rules").write_text(f"{PASSWORD}[\n")
    for kind in (".gitignore", ".ignore", ".rgignore"):
        (yard / kind).write_text(f"{PASSWORD}[\n")
    for name, target in {
        "out": "../outside",
        "file": "../outside/secret",
        "deep/out": "../../outside",
        "up": "..",
        "abs": str(yard / "root-not"),
        "loop": "loop",
        "gone": "../outside/nowhere",
        "chain": "deep/out",
        "in": "a/b",
        "a/in": "b",
        "a/.gitignore": "../../outside/rules",
        ".ignore": "../outside/rules",
    }.items():
        (root / name).symlink_to(target)
    return root


def calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield tools and the arguments to send to them."""
    for path in PATHS:
        yield "grep_content", {"pattern": "secret", "path": path, "sections": True}
        yield "find_files", {"path": path}
        yield "ls", {"path": path}
        yield "tree", {"path": path}
        yield "grep_content", {"pattern": "secret", "path": path, "expand": "definition"}
        yield "read_file", {"path": path}
        yield "resolve", {"anchor": f"{path}#1·k7q"}
    for pattern in PATTERNS:
        yield "grep_content", {"pattern": pattern, "output_mode": "count"}
        yield "grep_content", {"pattern": "secret", "file_pattern": pattern, "output_mode": "files_with_matches"}
        yield "find_files", {"pattern": pattern}
        yield "find_files", {"pattern": pattern, "entry_type": "any"}
        yield "ls", {"ignore": [pattern]}


def walk(root: str, rg: str) -> int:
    """Send every eleventh call, or all of them in `nox -s stress`, and return the number of answers."""
    workspaces = (sync.Workspace(root, rg=rg, anchors=True), sync.Workspace(root, rg="/no/such/rg"))
    for workspace in workspaces:  # import what is imported on first use
        workspace.grep_content("(")
        workspace.grep_content("secret", sections=True, expand="definition")
        workspace.grep_content("no such text")
        workspace.ls(ignore=["x"])
        workspace.find_files("x", entry_type="any")
        workspace.read_file("a/b/file.py")
        workspace.resolve("a/b/file.py#1·k7q")
    answers = 0
    os.path.lexists(BEGIN)
    for name, arguments in islice(calls(), 0, None, times(11, 1)):
        for workspace in workspaces if name == "ls" else workspaces[:1]:
            text = workspace.call(name, arguments)
            assert isinstance(text, str)
            assert PASSWORD not in text
            assert "id_rsa" not in text or "id_rsa" in str(arguments)
            answers += 1
    os.path.lexists(END)
    return answers


if __name__ == "__main__":
    print(walk(sys.argv[1], sys.argv[2]))
