"""Add a marked block to a text of Markdown or TOML, and remove it, without a change of any other byte; no I/O."""

import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from ripwrap._agents.json_text import ENTRY_ALONE, Removed, TakenError, is_object

MARK = "ripwrap agent install"
"""Text in the comments before and after a block."""
_BEGIN, _END = f">>> {MARK}, made ", f"<<< {MARK}"


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
