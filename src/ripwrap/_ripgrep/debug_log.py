"""Decode the lines of rg's log (`--debug`) that name the entries which rg leaves out, and the reason; no I/O.

`crates/ignore/src/walk.rs` and `crates/core/haystack.rs` write these lines (in rg 13, `subject.rs`). They are not a
stable format: the tests compare them in rg 13, 14 and 15, and an entry with other words has the kind `unknown`.
"""

import os
import re
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ripwrap._ripgrep.exit_status import MAX_STDERR, Exit
from ripwrap._ripgrep.page_collector import WholeOutput

MAX_LINE = 65_536
"""Maximum number of bytes of a line that are kept: a line quotes a rule twice, and a rule may be of any length."""

LogKind: TypeAlias = Literal["ignored", "hidden", "glob", "type", "too_large", "filter", "unknown"]

_LOGGED = re.compile(rb"(?:rg: )?(?:DEBUG|TRACE)\|")
_LEFT_OUT = re.compile(rb"(?:rg: )?DEBUG\|(?:ignore::walk|rg::\w+)\|[^|]*?:\d+: ignoring ")
_REASON = re.compile(rb"(?P<path>.*?): (?P<reason>Ignore\(IgnoreMatch\(.*|\d+ bytes|failed to pass .*)\Z", re.DOTALL)
_TEXT = rb'"((?:[^"\\]|\\.)*)"'
_RULE = re.compile(
    rb"(?:Gitignore\(|Override\(Glob\(Matched\()Glob \{ from: (?:None|Some\(%b\)), original: %b" % (_TEXT, _TEXT)
)
_TYPE = re.compile(rb"FileTypeDef \{ name: %b" % _TEXT)
_MARKS: dict[bytes, LogKind] = {b"Gitignore(": "ignored", b"Override(": "glob", b"Types(": "type", b"Hidden": "hidden"}
_ESCAPE = re.compile(rb"\\(?:u\{([0-9a-f]{1,6})\}|x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_HERE = os.path.join(os.curdir, "")
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0"}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Reason in rg's log why it leaves out an entry; `text` is the rule of `file`, or else the glob, type or size."""

    kind: LogKind
    text: str = ""
    file: str = ""


class LogCollector(WholeOutput):
    """Collector of rg's log: the reason for each entry, or each in `wanted`, by its path of `shown_in_log()`."""

    def __init__(self, wanted: Container[str] | None = None) -> None:
        super().__init__(Exit.check_listing)
        self.found: dict[str, LeftOut] = {}
        self._wanted = wanted
        self._known: dict[bytes, LeftOut] = {}  # one object for each rule, and not for each entry
        self._line = b""
        self._entry: bytes | None = None  # of which more lines may come, because the path has line breaks
        self._errors = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of the log."""
        first, *others = chunk.split(b"\n")
        self._line += first[: MAX_LINE - len(self._line)]
        for other in others:
            self._end_line(self._line)
            self._line = other[:MAX_LINE]

    def end_run(self, end: Exit) -> None:
        """Raise an error if rg failed; paths that it could not read raise no error."""
        self._end_line(self._line)
        self._end_entry()
        super().end_run(replace(end, stderr=bytes(self._errors), wrote=end.returncode == 0))

    def _end_line(self, line: bytes) -> None:
        if self._entry is not None and not _LOGGED.match(line):
            self._entry = (self._entry + b"\n" + line)[:MAX_LINE]
        else:
            self._end_entry()
            if start := _LEFT_OUT.match(line):
                self._entry = line[start.end() :]
            elif line and not _LOGGED.match(line) and len(self._errors) <= MAX_STDERR:
                self._errors += line + b"\n"
        if self._entry is not None and _REASON.match(self._entry):
            self._end_entry()

    def _end_entry(self) -> None:
        entry, self._entry = self._entry, None
        if entry is None:
            return
        found = _REASON.match(entry)
        raw, reason = (found["path"], found["reason"]) if found else (entry.partition(b": ")[0], b"")
        path = raw.decode("utf-8", "replace").removeprefix(_HERE)
        if self._wanted is None or path in self._wanted:
            self.found[path] = self._known.setdefault(reason, _left_out(reason))


def shown_in_log(path: str) -> str:
    """Return a path as rg writes it in its log: bytes that are not UTF-8 are replaced, and a `./` is left out."""
    return os.fsencode(path).decode("utf-8", "replace").removeprefix(_HERE)


def _left_out(reason: bytes) -> LeftOut:
    if reason.endswith(b" bytes"):
        return LeftOut("too_large", reason.partition(b" ")[0].decode())
    if reason.startswith(b"failed"):
        return LeftOut("filter")
    what = reason.removeprefix(b"Ignore(IgnoreMatch(")
    kind: LogKind | None = next((kind for mark, kind in _MARKS.items() if what.startswith(mark)), None)
    if rule := _RULE.match(what):
        return LeftOut(kind or "unknown", _unescaped(rule[2]), _unescaped(rule[1] or b""))
    if kind == "ignored" or kind is None:
        return LeftOut("unknown")
    name = _TYPE.search(what)
    return LeftOut(kind, _unescaped(name[1]) if name else "")


def _unescaped(text: bytes) -> str:
    """Undo the escapes of Rust's `{:?}`."""

    def plain(found: re.Match[bytes]) -> bytes:
        if found[1]:
            return chr(int(found[1], 16)).encode("utf-8", "surrogatepass")
        return bytes.fromhex(found[2].decode()) if found[2] else _ESCAPED.get(found[3], found[3])

    return os.fsdecode(_ESCAPE.sub(plain, text))
