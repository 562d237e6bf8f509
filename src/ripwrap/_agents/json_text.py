"""Add an entry to a text of JSON, or a marked block to Markdown or TOML, and change no other byte; no I/O.

The text may have comments and trailing commas, as VS Code and opencode accept them. The text is never written anew: an
entry is one insertion at the beginning of its object or array, on a line of its own if the other members have theirs.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

MARK = "RIPWRAP_AGENT"
"""Name in an entry that shows that install wrote the entry. A client gives it to the server as an environment variable.

Its value says what install made, so that uninstall removes no more: `made this` (the entry alone), `made mcpServers`
(also that object), `made .mcp.json` (also the file), or `made .vscode/` (also the directory).
"""
MADE = "{made}"
"""Placeholder in the value of an entry for what install made."""
ENTRY_ALONE = "this"

_MADE = re.compile(rf'{MARK}[": ]+made ([^"]*)')
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*"?'
_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf'((?:{_STRING}|[^\s\[{{,:"])\s*),(?=\s*[}}\]])|{_STRING}', re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class TakenError(ValueError):
    """There is an entry or file of this name that install did not write."""


@dataclass(frozen=True, slots=True)
class JsonText:
    """Text of JSON."""

    text: str
    plain: str
    value: Any


class Removed(NamedTuple):
    """Text without an entry: `None` if install made the file and nothing else is in it; and what install made."""

    text: str | None
    made: str = ""


class Member(NamedTuple):
    """Member of an object or array: its key (`None` in an array), and the offsets of member, value and end."""

    key: str | None
    start: int
    value: int
    end: int


class JsonContainer(NamedTuple):
    """Object or array: the offsets of its brackets, and its members."""

    opened: int
    closed: int
    members: list[Member]


@dataclass(frozen=True, slots=True)
class JsonEntry:
    """Entry that install adds to a file of JSON."""

    keys: Callable[[Any], tuple[str, ...]]
    name: str | None
    value: dict[str, Any]
    comments: bool = True

    def add(self, text: str | None, made: str) -> str:
        """Return the text with the entry; the same text if it has an equal entry."""
        if text is None:
            return json.dumps(self._nested(self.keys({}), made), indent=2) + "\n"
        document = parse(text, comments=self.comments)
        keys, levels = self._levels(document)
        if (found := self._find(document, levels, keys)) is not None:
            if _unmarked(_decode(document, found)) == _unmarked(self.value):
                return text
            raise TakenError(
                f"it has another entry {json.dumps(self.name or MARK)}; remove or rename that entry, then install again"
            )
        missing = keys[len(levels) - 1 :]
        member = self._nested(missing, missing[0] if missing else ENTRY_ALONE)
        expected = parse(text, comments=self.comments).value
        place = _walk(expected, keys[: len(levels) - 1])
        if isinstance(place, list):
            place[:0] = member
        else:
            place.update(member)
        return self._checked(_inserted(document, levels[-1], json.dumps(member)[1:-1]), expected)

    def remove(self, text: str) -> Removed:
        """Return the text without the entry that install added; the same text if install added none."""
        document = parse(text, comments=self.comments)
        keys, levels = self._levels(document)
        found = self._find(document, levels, keys)
        if found is None or (made := made_in(_decode(document, found))) is None:
            return Removed(text)
        chain = [*(one for level, key in zip(levels, keys, strict=False) if (one := _named(level, key))), found]
        first = keys.index(made) if made in keys else len(keys) if made == ENTRY_ALONE else -1
        at = len(keys)
        while at > first and len(levels[at].members) == 1 and not _has_comment(document, levels[at]):
            at -= 1
        if at < 0:
            return Removed(None, made)
        expected = parse(text, comments=self.comments).value
        place = _walk(expected, keys[:at])
        del place[chain[at].key if is_object(place) else levels[at].members.index(found)]
        return Removed(self._checked(_cut(document, levels[at], chain[at]), expected), made)

    def _nested(self, keys: tuple[str, ...], made: str) -> Any:
        """Return the entry as a member, in objects with these keys."""
        value = json.loads(json.dumps(self.value).replace(MADE, f"made {made}"))
        member: Any = [value] if self.name is None else {self.name: value}
        for key in reversed(keys):
            member = {key: member}
        return member

    def _levels(self, document: JsonText) -> tuple[tuple[str, ...], list[JsonContainer]]:
        """Return the keys, and the objects and arrays on the way to the entry, as far as they exist."""
        if not is_object(document.value):
            raise ValueError("it is not an object of JSON")
        keys = self.keys(document.value)
        levels = [_container(document.plain, _skip(document.plain, 0))]
        for number, key in enumerate(keys, 1):
            if (member := _named(levels[-1], key)) is None:
                break
            wanted = "[" if self.name is None and number == len(keys) else "{"
            if document.plain[member.value] != wanted:
                raise ValueError(f"{json.dumps(key)} is not an {'array' if wanted == '[' else 'object'}")
            levels.append(_container(document.plain, member.value))
        return keys, levels

    def _find(self, document: JsonText, levels: list[JsonContainer], keys: tuple[str, ...]) -> Member | None:
        if len(levels) <= len(keys):
            return None
        if self.name is not None:
            return _named(levels[-1], self.name)
        return next((one for one in levels[-1].members if made_in(_decode(document, one)) is not None), None)

    def _checked(self, text: str, expected: Any) -> str:
        """Return an edited text if it means what was expected."""
        with suppress(json.JSONDecodeError):
            if parse(text, comments=self.comments).value == expected:
                return text
        entry = json.dumps(_unmarked(self._nested(self.keys({}), ENTRY_ALONE)))
        raise ValueError(f"it cannot be edited without loss; add or remove by hand: {entry}")


def parse(text: str, *, comments: bool) -> JsonText:
    """Parse a text of JSON."""
    plain = text
    if comments:

        def blank(found: re.Match[str]) -> str:
            if found[0].startswith("/*") and not (found[0].endswith("*/") and len(found[0]) > 3):
                raise ValueError("a comment has no end")
            return found[0] if found[0].startswith('"') else " " * len(found[0])

        plain = _TRAILING_COMMA.sub(
            lambda found: found[0] if found[1] is None else f"{found[1]} ", _COMMENT.sub(blank, text)
        )

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    return JsonText(text, plain, json.loads(plain, parse_constant=refuse))


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return True if a parsed value is an object of JSON, or a table of TOML."""
    return isinstance(value, dict)


def made_in(value: Any) -> str | None:
    """Return what install made according to the mark in an entry; `None` if install did not write the entry."""
    found = _MADE.search(json.dumps(value))
    return found and found[1]


def _skip(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return found.end() if found else at


def _container(plain: str, opened: int) -> JsonContainer:
    """Return the object or array that begins at `opened`, in a text that has been parsed."""
    members: list[Member] = []
    closing = "}" if plain[opened] == "{" else "]"
    at = _skip(plain, opened + 1)
    while plain[at] != closing:
        start, key = at, None
        if closing == "}":
            key, at = _DECODER.raw_decode(plain, at)
            at = _skip(plain, _skip(plain, at) + 1)
        value = at
        at = _DECODER.raw_decode(plain, at)[1]
        members.append(Member(key, start, value, at))
        at = _skip(plain, at)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return JsonContainer(opened, at, members)


def _decode(document: JsonText, member: Member) -> Any:
    return _DECODER.raw_decode(document.plain, member.value)[0]


def _named(container: JsonContainer, key: str) -> Member | None:
    found = [one for one in container.members if one.key == key]
    if len(found) > 1:
        raise ValueError(f"it has the key {json.dumps(key)} twice; remove one of the two")
    return found[0] if found else None


def _walk(value: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        value = value[key]
    return value


def _unmarked(value: Any) -> Any:
    """Return a value without marks, and without empty objects."""
    if is_object(value):
        kept = {key: _unmarked(one) for key, one in value.items() if key != MARK}
        return {key: one for key, one in kept.items() if one != {}}
    if isinstance(value, list):
        entries: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [_unmarked(one) for one in entries]
    return _MADE.sub("", value.replace(MADE, "made ")) if isinstance(value, str) else value


def _has_comment(document: JsonText, container: JsonContainer) -> bool:
    outermost = container.opened == _skip(document.plain, 0)
    around = slice(None) if outermost else slice(container.opened, container.closed)
    return document.text[around] != document.plain[around]


def _inserted(document: JsonText, container: JsonContainer, member: str) -> str:
    """Insert a member before all others, on a line of its own unless the first one is on the line of the bracket."""
    text, at = document.text, container.opened + 1
    first = container.members[0].start if container.members else container.closed
    line_end = document.plain.find("\n", at, first)  # not one in a comment: those are blank
    if line_end < 0:
        spot = first if container.members else at
        return f"{text[:spot]}{member}{', ' if container.members else ''}{text[spot:]}"
    newline = "\n"
    if line_end > at and text[line_end - 1] == "\r":
        line_end, newline = line_end - 1, "\r\n"
    start = text.rfind("\n", 0, first) + 1
    indent = text[start : start + len(text[start:first]) - len(text[start:first].lstrip(" \t"))]
    if not container.members:  # one level more: the white space of the first indented line
        found = re.search(r"^(\t| +)", text, re.MULTILINE)
        indent += found[1] if found else "  "
    return f"{text[:line_end]}{newline}{indent}{member}{',' if container.members else ''}{text[line_end:]}"


def _cut(document: JsonText, container: JsonContainer, member: Member) -> str:
    """Remove a member with one comma beside it, and with its line if nothing else is on the line."""
    text, (_, start, _, end) = document.text, member
    comma = _skip(document.plain, end)
    indented = len(text[:start].rstrip(" \t"))
    after = text[end + 1 if text[end : end + 1] == "," else end :][:1]
    on_own_line = text[indented - 1 : indented] == "\n" and after in ("\r", "\n")
    if on_own_line:
        start = indented - (2 if text[indented - 2 : indented - 1] == "\r" else 1)
    pieces = [(start, end)]
    if text[end : end + 1] == ",":
        pieces = [(start, end + (2 if not on_own_line and text[end + 1 : end + 2] == " " else 1))]
    elif document.plain[comma] == ",":
        pieces.append((comma, comma + 1))
    elif before := [one for one in container.members if one.end < member.start]:
        comma = document.plain.index(",", before[-1].end)
        pieces = [(comma, end)] if not text[comma + 1 : start].strip() else [(comma, comma + 1), *pieces]
    return "".join(_kept(text, pieces))


def _kept(text: str, pieces: list[tuple[int, int]]) -> Iterator[str]:
    at = 0
    for start, end in pieces:
        yield text[at:start]
        at = end
    yield text[at:]


BLOCK_MARK = "ripwrap agent install"
"""Text in the comments before and after a block."""
_BEGIN, _END = f">>> {BLOCK_MARK}, made ", f"<<< {BLOCK_MARK}"


class FoundBlock(NamedTuple):
    """Block in a text: its offsets, what install made, and the newline of its lines."""

    start: int
    end: int
    made: str
    newline: str


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Lines between two comments that name ripwrap."""

    body: str
    header: str = ""
    comment: tuple[str, str] = ("<!-- ", " -->")

    def add(self, text: str | None, made: str) -> str:
        """Return the text with the block at its end, or with a new block in place of an old one."""
        if text is None:
            return f"{self._written(made)}\n"
        if found := self._find(text):
            block = self._written(found.made).replace("\n", found.newline)
            return text[: found.start] + block + text[found.end :]
        if self.header:
            raise TakenError(
                "it is there already, and install did not write it; remove or rename it, then install again"
            )
        newline = "\r\n" if "\r\n" in text else "\n"
        block = self._written(ENTRY_ALONE).replace("\n", newline)
        if not text:
            return block + newline
        # A text without a newline at its end gets a block without one, so that `remove()` knows how it was.
        return f"{text}{newline}{block}{newline}" if text.endswith("\n") else f"{text}{newline * 2}{block}"

    def remove(self, text: str) -> Removed:
        """Return the text without the block; the same text if it has none."""
        if not (found := self._find(text)):
            return Removed(text)
        before, after, newline = text[: found.start], text[found.end :], found.newline
        if not after:
            rest = before.removesuffix(newline).removesuffix(newline)
        else:
            blank = before == newline or before.endswith(f"\n{newline}")
            rest = (before.removesuffix(newline) if blank else before) + after.removeprefix(newline)
        return Removed(None if not rest and found.made != ENTRY_ALONE else rest, found.made)

    def _written(self, made: str) -> str:
        start, end = self.comment
        return f"{self.header}{start}{_BEGIN}{made}{end}\n{self.body}{start}{_END}{end}"

    def _find(self, text: str) -> FoundBlock | None:
        start, end = self.comment
        begin = re.search(rf"(?m)^{re.escape(start + _BEGIN)}([^\r\n]*){re.escape(end)}(\r?\n)", text)
        if begin is None or (last := text.find(f"\n{start}{_END}{end}", begin.end() - 1)) < 0:
            return None
        header = self.header.replace("\n", begin[2])
        first = 0 if text[: begin.start()] == header else begin.start()
        return FoundBlock(first, last + len(f"\n{start}{_END}{end}"), begin[1], begin[2])


@dataclass(frozen=True, slots=True)
class TomlEntry:
    """Table `[group.name]` that install adds to a file of TOML, in a block."""

    group: str
    name: str
    block: TextBlock

    def add(self, text: str | None, made: str) -> str:
        """Return the text with the table at its end; the same text if it has an equal table."""
        wanted = tomllib.loads(self.block.body)
        before = tomllib.loads(text or "")
        tables = before.get(self.group, {})
        if text is not None and is_object(tables) and self.name in tables:
            if tables[self.name] == wanted[self.group][self.name]:
                return text
            raise ValueError(
                f"it has another table [{self.group}.{self.name}]; remove or rename it, then install again"
            )
        added = self.block.add(text, made)
        self._check(before, added, wanted)
        return added

    def remove(self, text: str) -> Removed:
        """Return the text without the block; the same text if it has none."""
        before = tomllib.loads(text)
        removed = self.block.remove(text)
        if removed.text is not None and removed.text != text:
            self._check(before, removed.text, {})
        return removed

    def _check(self, before: dict[str, Any], text: str, wanted: dict[str, Any]) -> None:
        """Refuse an edited text that has another table than `wanted`, or in which something else has changed."""
        with suppress(tomllib.TOMLDecodeError):
            after = tomllib.loads(text)
            if self._split(after) == (wanted, self._split(before)[1]):
                return
        raise ValueError(f"it cannot be edited without loss; add or remove by hand:\n{self.block.body}")

    def _split(self, values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the table alone, and everything else; a group without other tables counts for nothing."""
        tables = values.get(self.group, {})
        if not is_object(tables):
            return {}, values
        mine = {self.name: tables[self.name]} if self.name in tables else {}
        others = {key: value for key, value in tables.items() if key != self.name}
        rest = {key: value for key, value in values.items() if key != self.group}
        return {self.group: mine} if mine else {}, rest | ({self.group: others} if others else {})
