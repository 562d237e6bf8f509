"""Program that `ripwrap.testing.fake()` runs in place of rg. It answers from texts, or from recorded output of rg.

Python runs this program without site-packages, for a fast start. It imports ripwrap only to apply globs and types.
"""

from __future__ import annotations

import json
import os
import re
import sys
from base64 import b64encode

TYPE_CHECKING = False  # importing it from `typing` takes long; type checkers take this name for True
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, NoReturn

MODES = {"json", "files", "count", "count-matches", "type-list"}
FOLLOWED = {
    "regexp", "fixed-strings", "ignore-case", "smart-case", "case-sensitive", "word-regexp", "line-regexp", "max-count",
    "context", "before-context", "after-context", "glob", "type", "type-not", "hidden", "include-zero", "sort", "sortr",
}  # fmt: skip
WITHOUT_EFFECT = {
    "no-config", "line-buffered", "null", "with-filename", "follow", "no-follow", "no-require-git", "require-git",
    "no-hidden", "no-ignore", "no-ignore-dot", "no-ignore-exclude", "no-ignore-files", "no-ignore-global",
    "no-ignore-parent", "no-ignore-vcs", "one-file-system", "threads", "mmap", "no-mmap", "dfa-size-limit",
    "regex-size-limit", "stats",
}  # fmt: skip
EXCLUDED = ["!.git", "!.ripgrep/"]
"""Globs that ripwrap passes in each search without `include_git`."""
LEADING_FLAGS = re.compile(r"\A\(\?([imsx]+)\)(.*)", re.DOTALL)
"""Flags such as `(?i)`, which Python's `re` allows only at the start of the whole pattern."""
HOW = "use ripwrap.testing.tree() with a real rg"


class Flags:
    """Command-line flags of a run, each with the values that were given for it."""

    def __init__(self, arguments: Sequence[str]) -> None:
        end = arguments.index("--") if "--" in arguments else len(arguments)
        self.paths = [*arguments[end + 1 :]] or ["."]
        self._values: dict[str, list[str]] = {}
        self._order: list[str] = []
        for argument in arguments[:end]:
            name, _, value = argument.removeprefix("--").partition("=")
            if not argument.startswith("--") or name not in MODES | FOLLOWED | WITHOUT_EFFECT:
                fail(f"the fake rg does not know {argument}; {HOW}")
            self._values.setdefault(name, []).append(value)
            self._order.append(name)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def all(self, name: str) -> list[str]:
        """Return all values of a flag."""
        return self._values.get(name, [])

    def number(self, *names: str) -> int | None:
        """Return the last value of the first flag in `names` that was given; `None` if none of them was given."""
        return next((int(self._values[name][-1]) for name in names if name in self._values), None)

    def last(self, *names: str) -> str | None:
        """Return the flag in `names` that comes last on the command line, and so counts; `None` if none was given."""
        return next((name for name in reversed(self._order) if name in names), None)

    def context(self) -> tuple[int, int]:
        """Return the number of lines of context before and after a match."""
        return self.number("before-context", "context") or 0, self.number("after-context", "context") or 0


def fail(text: str) -> NoReturn:
    """Write an error to stderr as rg does, and exit with 2."""
    os.write(2, f"rg: {text}\n".encode(errors="surrogateescape"))
    sys.exit(2)


def main(directory: str, arguments: Sequence[str]) -> int:
    """Print the output of one run of rg, and return the exit code."""
    with open(os.path.join(directory, "calls"), "a", encoding="utf-8") as log:
        log.write(json.dumps(arguments) + "\n")
    with open(os.path.join(directory, "settings.json"), encoding="utf-8") as file:
        settings = json.load(file)
    given = [argument.removeprefix("--regexp=") for argument in arguments if argument.startswith("--regexp=")]
    if "--json" in arguments and len(given) == 1 and given[0] in settings["recorded"]:
        output = settings["recorded"][given[0]].encode("latin-1")
        write(output)
        return 0 if b'"type":"match"' in output else 1
    if settings["recorded"] and not settings["texts"]:
        fail(
            f"the fake rg has no recorded answer for {given}, only for {sorted(settings['recorded'])}; "
            "add the pattern to fake(recorded=…)"
        )
    flags = Flags(arguments)
    if "type-list" in flags:
        write("".join(f"{name}: {', '.join(globs)}\n" for name, globs in settings["types"].items()).encode())
        return 0
    texts = {path: text.encode("latin-1") for path, text in settings["texts"].items()}
    files = list(searched(texts, flags, settings))
    if "files" in flags:
        write(b"".join(os.fsencode(shown) + b"\0" for shown, _ in files))
        return 0 if files else 1
    pattern = compiled(flags)
    if "json" in flags:
        return write_json(files, pattern, flags)
    return write_counts(files, pattern, flags)


def searched(texts: Mapping[str, bytes], flags: Flags, settings: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield the path, as rg prints it, and the text of each file that is searched."""
    selects = selection(flags, settings)
    order = sorted(texts, key=lambda path: path.split("/"), reverse=flags.all("sortr") == ["path"])
    for given in flags.paths:
        top = os.path.normpath(os.path.relpath(given) if os.path.isabs(given) else given).replace(os.sep, "/")
        if top in texts:
            yield given, texts[top]
            continue
        inside = [path for path in order if top == "." or path.startswith(f"{top}/")]
        if not inside and top != ".":
            fail(f"{given}: No such file or directory (os error 2)")
        for path in inside:
            if selects(path):
                yield os.path.join(given, path if top == "." else path.removeprefix(f"{top}/")), texts[path]


def selection(flags: Flags, settings: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return a function that takes a path, and returns True if the file is searched."""
    globs = [glob for glob in flags.all("glob") if glob not in EXCLUDED]
    types, types_not = flags.all("type"), flags.all("type-not")
    for name in (*types, *types_not):
        if name not in settings["types"]:
            fail(f"the fake rg does not know the file type {name}; pass fake(types={{{name!r}: ['*.…']}}), or {HOW}")
    hidden = "hidden" in flags
    if not (globs or types or types_not):
        excluded = {".git", ".ripgrep"}

        def selects(path: str) -> bool:
            return not any(part in excluded or (part[0] == "." and not hidden) for part in path.split("/"))

        return selects
    sys.path[:] = settings["path"]
    from ripwrap._ignore.rules import NameSelection

    options = {"glob": globs, "type": types, "type_not": types_not, "hidden": hidden}
    try:
        return NameSelection(options, settings["types"]).selects
    except ValueError as error:
        fail(str(error))


def compiled(flags: Flags) -> re.Pattern[str]:
    """Return all patterns of a run as one compiled pattern of `re`, to match with each line."""
    patterns = flags.all("regexp")
    parts = [re.escape(one) if "fixed-strings" in flags else LEADING_FLAGS.sub(r"(?\1:\2)", one) for one in patterns]
    whole = "|".join(f"(?:{part})" for part in parts)
    edges = flags.last("line-regexp", "word-regexp")
    if edges == "line-regexp":
        whole = rf"\A(?:{whole})\Z"
    elif edges == "word-regexp":
        whole = rf"(?<!\w)(?:{whole})(?!\w)"
    case = flags.last("ignore-case", "smart-case", "case-sensitive")
    ignored = case == "ignore-case" or (case == "smart-case" and not any(map(str.isupper, "".join(patterns))))
    try:
        return re.compile(whole, re.IGNORECASE if ignored else re.NOFLAG)
    except re.error as error:
        fail(f"the fake rg searches with Python's re, which does not accept {patterns}: {error}; {HOW}")


def spans(pattern: re.Pattern[str], line: str) -> list[tuple[int, int]]:
    """Return the start and end of each match in a line; an empty match right after another match does not count."""
    found: list[tuple[int, int]] = []
    for one in pattern.finditer(line):
        if not (one.start() == one.end() and found and found[-1][1] == one.end()):
            found.append(one.span())
    return found


def matching_lines(text: bytes, pattern: re.Pattern[str], flags: Flags) -> dict[int, list[tuple[int, int]]]:
    """Return a map from the number of each matching line (from 0) to its matches; empty for a binary file.

    As in rg, `--max-count` does not exclude matches in the context after the last match that it allows.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    most = flags.number("max-count")
    for number, line in enumerate([] if b"\0" in text else split(text)):
        if most is not None and len(found) >= most and number > list(found)[most - 1] + flags.context()[1]:
            break
        if where := spans(pattern, decode(line.removesuffix(b"\n"))):
            found[number] = where
    return found


def split(text: bytes) -> list[bytes]:
    """Split a text into lines with their ends."""
    return re.findall(rb"[^\n]*\n|[^\n]+\Z", text)


def decode(raw: bytes) -> str:
    """Decode UTF-8; each byte that is not UTF-8 becomes one character (a lone surrogate)."""
    return raw.decode("utf-8", "surrogateescape")


def write_counts(files: Sequence[tuple[str, bytes]], pattern: re.Pattern[str], flags: Flags) -> int:
    """Write the number of matches, or of matching lines, of each file, and return the exit code."""
    anything = False
    for shown, text in files:
        found = matching_lines(text, pattern, flags)
        count = sum(map(len, found.values())) if "count-matches" in flags else len(found)
        anything = anything or bool(found)
        if found or "include-zero" in flags:
            write(os.fsencode(shown) + b"\0%d\n" % count)
    return 0 if anything else 1


def write_json(files: Sequence[tuple[str, bytes]], pattern: re.Pattern[str], flags: Flags) -> int:
    """Write the matches of each file as rg's JSON, and return the exit code."""
    total = statistics()
    for shown, text in files:
        found = matching_lines(text, pattern, flags)
        stats = statistics(searches=1, bytes_searched=len(text))
        if found:
            stats["searches_with_match"], stats["matched_lines"] = 1, len(found)
            stats["matches"] = sum(map(len, found.values()))
            path = field(os.fsencode(shown))
            record("begin", {"path": path})
            write_lines(path, text, found, flags)
            record("end", {"path": path, "binary_offset": None, "stats": stats})
        for key, value in stats.items():
            if key != "elapsed":
                total[key] += value
    record("summary", {"elapsed_total": ELAPSED, "stats": total})
    return 0 if total["matches"] else 1


def write_lines(
    path: Mapping[str, str], text: bytes, found: Mapping[int, Sequence[tuple[int, int]]], flags: Flags
) -> None:
    """Write the matching lines of a file, and their context."""
    before, after = flags.context()
    counted = list(found)[: flags.number("max-count")]
    near = {line for number in counted for line in range(number - before, number + after + 1)}
    offset = 0
    for number, line in enumerate(split(text)):
        if number in near:
            content = decode(line)
            submatches: list[Any] = []
            for start, end in found.get(number, ()):
                at = len(encode(content[:start]))
                matched = encode(content[start:end])
                submatches.append({"match": field(matched), "start": at, "end": at + len(matched)})
            data = {"path": path, "lines": field(line), "line_number": number + 1, "absolute_offset": offset}
            record("match" if number in found else "context", {**data, "submatches": submatches})
        offset += len(line)


ELAPSED = {"secs": 0, "nanos": 0, "human": "0.000000s"}


def statistics(**counts: int) -> dict[str, Any]:
    """Return the statistics in rg's JSON; a number that is not in `counts` is 0."""
    names = "searches", "searches_with_match", "bytes_searched", "bytes_printed", "matched_lines", "matches"
    return {"elapsed": ELAPSED, **dict.fromkeys(names, 0), **counts}


def encode(text: str) -> bytes:
    """Return the bytes of a text that `decode()` returned."""
    return text.encode("utf-8", "surrogateescape")


def field(raw: bytes) -> dict[str, str]:
    """Return a text as rg's JSON has it: in Base64 if it is not UTF-8."""
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError:
        return {"bytes": b64encode(raw).decode()}


def record(kind: str, data: Mapping[str, Any]) -> None:
    """Write one message of rg's JSON, as a line without spaces."""
    write(json.dumps({"type": kind, "data": data}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")


def write(raw: bytes) -> None:
    """Write to stdout."""
    sys.stdout.buffer.write(raw)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
