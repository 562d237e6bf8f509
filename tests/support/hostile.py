"""Hostile arguments for every tool, in directories with links, archives and repositories that lead to the outside.

`python hostile.py YARD RG` sends the calls to workspaces, and prints the number of answers and what leaked, as JSON.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ripwrap import sync
from ripwrap.workspace.arguments import TOOL_ERRORS
from support import hostile_calls, strace
from support.effort import times

BEGIN, END = "/ripwrap-begins-here", "/ripwrap-ends-here"
"""Missing paths that mark the begin and the end of the calls in a trace."""

CANARY = "canary"
"""Beginning of a word in each file outside of the roots; no argument has it."""

PATHS = (
    *("../outside/secret", "file", "..", "../", "../..", "../outside", "./../outside", "a/../../outside"),
    *("../root-not", "../root-not/x", "/", "//", "///etc/passwd", "/etc/passwd", "/etc/shadow", "/etc", "/root"),
    "/home",
    *("/proc/self/environ", "/proc/1/root", "/proc/self/cwd", "/proc/self/root/etc/passwd", "/dev/stdin"),
    *("/dev/fd/0", "/dev/tty", "/sys", "/tmp", "/var/log", "/usr", "~", "~/", "~/.ssh/id_rsa", "~root"),
    *("~root/.bashrc", "~nobody", "$HOME", "${HOME}", "%USERPROFILE%", "`pwd`", "$(id)", "out", "out/", "out/secret"),
    *("out/../secret", "deep/out", "deep/out/secret", "up", "up/outside", "up/..", "abs", "abs/x", "loop"),
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
    *("/mnt", "/boot", "./.", "a/b/../../../root/../outside", ".git", ".git/", ".git/config", ".git/hooks/pre-commit"),
    *("a/../.git/config", "./.git/./hooks", "vcs", "vcs/hooks/pre-commit", ".hg/hgrc", ".jj", ".svn", ".ripwrap"),
    *("sub/.git", "sub/.git/config", ".GIT/config", ".git/../.git/config", "home/.gitconfig"),
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


REVISIONS = (
    *("HEAD", "main", "HEAD:", "HEAD:../outside", "HEAD:..", "HEAD:/", "HEAD:./..", ":/", ":/secret", ":0:a", "@"),
    *("@{0}", "HEAD@{1}", "@{-1}", "HEAD^{/secret}", "HEAD^{}", "HEAD^@", "HEAD^!", "HEAD..main"),
    *("^HEAD", "--all", "-p", "--output=/tmp/x", "--upload-pack=sh", "--git-dir=../outside/private/.git"),
    *("--exec-path=/tmp", "-c", "-ccore.pager=sh", "-C..", "--work-tree=/", "--no-index", "--ext-diff", "--textconv"),
    "refs/heads/main",
    *("../../outside/private/.git/HEAD", "refs/../../../outside/private/.git/refs/heads/main", "refs/stash", "gone"),
    *("/etc/passwd", "file:///etc/passwd", "ext::sh -c id", "ssh://-oProxyCommand=id/x", "$(id)", "`id`", "; id"),
    *("main\0--all", "main\n--all", "\x1b[2J", "\ud800", "\udcff", "", " ", "a" * 5000, "~" * 300, "^" * 300),
    *("HEAD~99999999", "HEAD~1^2~3", "@{upstream}", "@{push}", "@{1 day ago}", "HEAD^{commit}", "HEAD^{tree}"),
    "HEAD^{blob}",
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
)  # fmt: skip

INSIDE = (
    *(hostile_calls.FORMATS, "zip,tar", "gz", "ipynb", "ipynb-outputs", "pdf,docx,xlsx", "zip,zip,zip", "ZIP", ".zip"),
    *("../outside", "/etc/passwd", "--pre", "-z", "all", "*", "{zip,tar}", "zip;id", "zip\0tar", "\ud800", ","),
    *("zip," * 500, "z" * 5000, "tar.gz", "tgz,tbz2,txz", "os:system", "ripwrap.sources.notebooks:read_cells"),
)  # fmt: skip

TYPES = (
    *("py", "all", "", "no-such-type", "--pre=sh", "../outside", "ripwrap", "py:*.py", "all:include:py", "-t", "\0"),
    *("\ud800", "p" * 5000, "{py,txt}", "*", "/etc/passwd"),
)  # fmt: skip

RANGES = (
    *("1-2", "", "1-", "2-1", "0-0", "-1", "1-999999999999999999", "1,1,1", "a-b", "1-2," * 2000, "9" * 5000, "\0"),
    *("../outside/secret", "\u0661-\u0662", "1;id", "1-2-3"),
)  # fmt: skip

REPLACEMENTS = (
    *("open", "", "$0", "$1", "${0}", "$name", "$0" * 3000, "\\1", "\0", "\n", "\ud800", "x" * 5000, "\x1b[2J"),
    *("$(id)", "../outside", "--pre=sh", "$$", "$"),
)  # fmt: skip

ANCHORS = (
    *(f"{path}#1\u00b7k7q" for path in PATHS),
    *("", "#", "#1", "\u00b7", "a#b", "a/b/file.py#0\u00b7k7q", "a/b/file.py#99999999999\u00b7k7q", "#1\u00b7k7q"),
    "a/b/file.py#1\u00b7../../outside",
)  # fmt: skip

TABLE: hostile_calls.Values = {
    "path": PATHS,
    "like": PATHS,
    "pattern": PATTERNS,
    "file_pattern": PATTERNS,
    "ignore": PATTERNS,
    "query": (*PATTERNS, *PATHS),
    "name": ("secret", "root", *PATTERNS, *PATHS),
    "file_type": TYPES,
    "rev": REVISIONS,
    "inside": INSIDE,
    "ranges": RANGES,
    "lines": RANGES,
    "commit": REVISIONS,
    "anchor": ANCHORS,
    "replacement": REPLACEMENTS,
}
"""Hostile values of the arguments that are texts, by the name of the argument; each first value finds something."""


def canary(name: str) -> str:
    """Return the word that is in the file of this name, and nowhere else."""
    return f"{CANARY}{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _git(folder: Path, *arguments: str) -> str:
    # The test's own git needs a home without the configurations of this machine and of the yard.
    env = {"PATH": os.environ["PATH"], "HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for kind in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{kind}_NAME": "a", f"GIT_{kind}_EMAIL": "a", f"GIT_{kind}_DATE": "2026-01-01T00:00:00Z"}
    run = ["git", "-c", "init.defaultBranch=main", "-c", "gc.auto=0", *arguments]
    return subprocess.run(run, cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


def commit(folder: Path) -> None:
    """Make a repository of a folder, with a commit of all its files."""
    _git(folder, "init", "-q")
    _git(folder, "add", "--force", ".")
    _git(folder, "commit", "-q", "-m", f"all {canary(str(folder)) if folder.name == 'private' else ''}")


def furnish(yard: Path) -> Path:
    """Create a root with links, archives and a repository, next to files that no tool may read; return the root."""
    root = yard / "root"
    for name in ("root/a/b/file.py", "root/..a/file", "root/.../file", "root/deep/file", "root/.env"):
        (yard / name).parent.mkdir(parents=True, exist_ok=True)
        (yard / name).write_text("def f():\n    return 'secret'\n")
    for name in (
        *(
            "outside/secret",
            f"outside/{canary('a name')}",
            "outside/private/secret",
            "outside/x",
            "outside/deep/secret",
        ),
        *("root-not/x", "home/.ssh/id_rsa", "outside/member", "secret", "member"),
    ):
        (yard / name).parent.mkdir(parents=True, exist_ok=True)
        (yard / name).write_text(f"secret {canary(name)}\n")
    (yard / "home/.gitconfig").write_text(f"[user]\n\tname = secret {canary('.gitconfig')}\n")
    (yard / "outside" / "rules").write_text(f"{canary('rules')}[\n")
    (yard / "outside" / "config").write_text(f"[{canary('config')}\nsecret {canary('config')}\n")
    for kind in (".gitignore", ".ignore", ".rgignore"):
        (yard / kind).write_text(f"{canary(kind)}[\n")
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
        "notes.ipynb": "../outside/secret",
        "linked.zip": "../outside/secret",
        "vcs": ".git",
    }.items():
        (root / name).symlink_to(target)
    _pack(root)
    commit(root)
    for name in (".git/hooks/pre-commit", "sub/.git", ".hg/hgrc", ".jj/config", ".svn/hooks/x", ".ripwrap/index"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("#!/bin/sh\n# secret\n")
    (root / ".git/config").write_text((root / ".git/config").read_text() + "# secret\n")
    commit(yard / "outside" / "private")
    _make_escapes(yard)
    return root


def _pack(root: Path) -> None:
    """Write archives whose members have names and links that lead to the outside."""
    with zipfile.ZipFile(root / "members.zip", "w") as archive:
        for name in ("../outside/secret", "../member", "/etc/passwd", "ok.py", "a/../../member", "..\\member"):
            archive.writestr(name, "secret ok\n")
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "../outside/secret")
    with tarfile.open(root / "members.tar", "w") as packed:
        packed.add(root / "a/b/file.py", "../outside/x")
        for kind, name in ((tarfile.SYMTYPE, "soft"), (tarfile.LNKTYPE, "hard"), (tarfile.CHRTYPE, "device")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "../outside/secret"
            packed.addfile(member)
    cells = [{"cell_type": "markdown", "metadata": {}, "source": "![secret](attachment:../../outside/secret)"}]
    (root / "cells.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


def _make_escapes(yard: Path) -> None:
    """Make roots whose repositories lead out of them, or name a program that git is to start."""
    private = yard / "outside/private/.git"
    payload = yard / "outside/payload"
    payload.write_text("#!/bin/sh\nexec id\n")
    payload.chmod(0o755)
    for name, change in ESCAPES.items():
        root = yard / "escapes" / name
        root.mkdir(parents=True)
        (root / "own").write_text("secret\n")
        change(root, private, payload)


def _gitdir(root: Path, private: Path, payload: Path) -> None:
    (root / ".git").write_text(f"gitdir: {private}\n")


def _linked(root: Path, private: Path, payload: Path) -> None:
    (root / ".git").symlink_to(os.path.relpath(private, root))


def _commondir(root: Path, private: Path, payload: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git/commondir").write_text(f"{private}\n")


def _alternates(root: Path, private: Path, payload: Path) -> None:
    commit(root)
    (root / ".git/objects/info").mkdir(exist_ok=True)
    (root / ".git/objects/info/alternates").write_text(f"{private}/objects\n")
    (root / ".git/refs/heads/main").write_text((private / "refs/heads/main").read_text())


def _objects(root: Path, private: Path, payload: Path) -> None:
    commit(root)
    (root / ".git/objects").rename(root / ".git/old")
    (root / ".git/objects").symlink_to(private / "objects")
    (root / ".git/refs/heads/main").write_text((private / "refs/heads/main").read_text())


def _include(root: Path, private: Path, payload: Path) -> None:
    commit(root)
    _git(root, "config", "include.path", str(private.parent.parent / "config"))


def _payload(root: Path, private: Path, payload: Path, *, url: str = "ssh://host.invalid/x", lacks: str = "") -> None:
    """Lack an object that git would fetch, and name a program in each setting that can start one."""
    (root / "folder").mkdir()
    (root / "folder/missing").write_text("secret of a promisor\n")
    commit(root)
    oid = _git(root, "rev-parse", lacks or "HEAD:folder/missing").strip()
    (root / ".git/objects" / oid[:2] / oid[2:]).unlink()
    (root / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    for key, value in {
        **dict.fromkeys(("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "core.askPass"), payload),
        **dict.fromkeys(("diff.external", "diff.x.textconv", "diff.x.command", "filter.x.smudge"), payload),
        **dict.fromkeys(("filter.x.clean", "filter.x.process", "gpg.program", "gpg.ssh.program"), payload),
        **dict.fromkeys(("credential.helper", "uploadpack.packObjectsHook", "interactive.diffFilter"), payload),
        **dict.fromkeys(("remote.origin.uploadpack", "core.gitProxy", "core.alternateRefsCommand"), payload),
        **dict.fromkeys(("pager.ls-tree", "pager.cat-file", "pager.log", "pager.rev-parse"), payload),
        **{f"alias.{name}": f"!{payload}" for name in ("ls-tree", "cat-file", "rev-parse", "rev-list", "log", "fetch")},
        "log.showSignature": "true",
        "core.hooksPath": payload.parent,
        "remote.origin.url": url,
        "remote.origin.promisor": "true",
        "remote.origin.partialclonefilter": "blob:none",
        "extensions.partialClone": "origin",
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
        "core.repositoryFormatVersion": "1",
    }.items():
        _git(root, "config", key, str(value))


ESCAPES: dict[str, Callable[[Path, Path, Path], None]] = {
    "gitdir": _gitdir,
    "linked": _linked,
    "commondir": _commondir,
    "alternates": _alternates,
    "objects": _objects,
    "include": _include,
    "payload": _payload,
    "payload-tree": partial(_payload, lacks="HEAD:folder"),
    "payload-top": partial(_payload, lacks="HEAD:"),
    "payload-commit": partial(_payload, lacks="HEAD"),
    "payload-command": partial(_payload, lacks="HEAD:folder", url="ext::/bin/sh -c id"),
    "payload-local": partial(_payload, lacks="HEAD:folder", url="../../outside/private"),
}
"""Roots whose repositories lead out of them or start programs, each with the function that makes it."""

ESCAPING: tuple[hostile_calls.Call, ...] = (
    ("grep_content", {"pattern": "secret", "rev": "HEAD"}),
    ("grep_content", {"pattern": "secret", "rev": "main", "output_mode": "count", "inside": "zip"}),
    ("grep_content", {"pattern": "secret", "rev": "main", "output_mode": "files_with_matches", "path": "own"}),
    ("grep_content", {"pattern": "secret", "rev": "HEAD:", "sections": True}),
    ("find_files", {"include_hidden": True, "sort": "newest"}),
    ("read_file", {"path": ".git/HEAD"}),
)
"""Calls that are sent to each of these roots."""

WRITING: tuple[hostile_calls.Call, ...] = tuple(
    ("replace_content", {**hostile_calls.BASES["replace_content"], "include_hidden": True, "path": path, **more})
    for path in (".", ".git", ".git/config", "vcs/hooks", ".hg", ".jj/config", ".svn", ".ripwrap", "sub", "sub/.git")
    for more in ({}, {"include_ignored": True})
)
"""Calls that write below directories of version control if they may."""

FOLLOWING: tuple[hostile_calls.Call, ...] = (
    ("grep_content", {"pattern": "secret", "include_hidden": True, "include_ignored": True}),
    ("grep_content", {"pattern": "secret", "path": "deep", "sections": True, "expand": "definition"}),
    ("grep_content", {"pattern": "secret", "output_mode": "count", "inside": hostile_calls.FORMATS}),
    ("grep_content", {"pattern": "x|secret", "output_mode": "files_with_matches", "file_pattern": "*"}),
    ("find_files", {"entry_type": "any", "include_hidden": True}),
    ("find_files", {"pattern": "**/secret", "sort": "newest"}),
    ("ls", {"include_hidden": True, "include_ignored": True}),
    ("tree", {"include_hidden": True, "include_ignored": True}),
    ("codebase_search", {"query": "secret member"}),
    ("replace_content", {"pattern": "secret", "replacement": "open", "apply": False}),
)
"""Calls of a workspace that follows links: rg reads the outside, but no answer shows it."""


def answers(workspace: sync.Workspace, name: str, arguments: dict[str, Any]) -> Iterator[str]:
    """Yield all texts of an answer: the text, the dump of the model, and the error with its notes."""
    try:
        result = workspace.call_result(name, arguments)
    except TOOL_ERRORS as error:
        yield workspace.error_text(error)
        yield "\n".join(("Error: ", str(error), repr(error), repr(vars(error)), *getattr(error, "__notes__", ())))
    else:
        yield workspace.text(result)
        yield result.model_dump_json()
        yield json.dumps(result.structured())


LEAKS: list[str] = []
"""Answers that have something from outside of the roots."""


def check(workspace: sync.Workspace, name: str, arguments: dict[str, Any]) -> str:
    """Send a call, note if a text of its answer has anything from outside of the roots, and return the first text."""
    texts = list(answers(workspace, name, arguments))
    for text in texts:
        _look(text, f"{name} to {arguments!r:.300} in {', '.join(map(os.path.basename, workspace.roots))}")
    return texts[0]


def _look(text: str, what: str) -> None:
    if found := re.search(rf"{CANARY}\w*", text):
        LEAKS.append(f"{_planted(found[0])} is in the answer of {what}: {text[:300]}")


def _planted(word: str) -> str:
    names = ("a name", "rules", "config", ".gitconfig", ".gitignore", ".ignore", ".rgignore")
    return next((name for name in names if canary(name) == word), "another file outside of the roots")


def raw(workspace: sync.Workspace, path: str) -> None:
    """Call the methods that are not tools, and check what they return."""
    for method in (workspace.read_bytes, workspace.file_info, workspace.list_directory):
        try:
            text = repr(method(path))
        except TOOL_ERRORS as error:
            text = str(error)
        _look(text, f"{method.__name__} to {path!r}")


def walk(yard: str, rg: str) -> int:
    """Send some of the calls, or all of them in `nox -s stress`, and return the number of answers."""
    root, copy = os.path.join(yard, "root"), os.path.join(yard, "copy", "root")
    index = os.path.join(yard, os.pardir, "scratch", "index")
    plain = sync.Workspace(root, rg=rg, anchors=True)
    without = sync.Workspace(root, rg="/no/such/rg")
    indexed = sync.Workspace(root, rg=rg, index=index)
    writer = sync.Workspace(copy, rg=rg, write=True)
    offers = {
        plain: {*hostile_calls.SCHEMAS} - {"replace_content", "index_codebase", "index_status", "index_health_check"},
        without: {"ls", "read_file"},
        indexed: {"grep_content", "codebase_search", "index_codebase", "index_status", "index_health_check"},
        writer: {"replace_content"},
    }
    assert set().union(*offers.values()) == set(hostile_calls.SCHEMAS)
    escapes = [sync.Workspace(os.path.join(yard, "escapes", name), rg=rg) for name in ESCAPES]
    for workspace, tools in offers.items():  # import what is imported on first use
        for name in tools - {"index_codebase", "replace_content"}:
            workspace.call(name, hostile_calls.BASES[name])
    number = 0
    strace.mark(BEGIN)
    indexed.index_codebase()
    assert "secret" in check(plain, "grep_content", {"pattern": "secret", "rev": "HEAD", "path": "a"})
    assert "ok.py" in check(plain, "grep_content", {"pattern": "secret", "inside": "zip"})
    for place, (name, arguments) in enumerate(hostile_calls.calls(TABLE, times(80, 1))):
        able = [workspace for workspace, tools in offers.items() if name in tools]
        for workspace in able if times(0, 1) else [able[place % len(able)]]:
            check(workspace, name, arguments)
            number += 1
    for path in PATHS[:: times(22, 1)]:
        raw(plain, path)
        number += 3
    more = [(writer, WRITING), *((workspace, ESCAPING) for workspace in escapes)]
    number += sum(_send(workspace, wanted) for workspace, wanted in more)
    strace.mark(END)
    indexed.close()
    return number + _send(sync.Workspace(root, rg=rg, follow=True, write=True), FOLLOWING)


def _send(workspace: sync.Workspace, wanted: Sequence[hostile_calls.Call]) -> int:
    for name, arguments in wanted:
        check(workspace, name, arguments)
    return len(wanted)


if __name__ == "__main__":
    print(json.dumps({"answers": walk(sys.argv[1], sys.argv[2]), "leaks": LEAKS}))
