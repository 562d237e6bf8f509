"""Choose the passages of a file that answer a query: definitions, or the parts of long ones; no I/O.

A file is found by its chunks, which end at a number of characters. What is shown of it is a definition. So the text of
the file is split at the lines where definitions begin, and each definition is compared with the query: by its words,
which count more if fewer definitions of the file have them, and by its name. The words of other files do not matter:
a word that is rare in all files, but frequent in this one, does not tell its definitions apart.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, chain, islice
from typing import NamedTuple

from ripwrap._code.outline import CodeNames
from ripwrap._code.treesitter.merge import MAX_CHUNK_CHARS, Chunk, window_chunks, without_blank_lines
from ripwrap._ranking.bm25 import count_stems
from ripwrap._ranking.document import SourceText, read_code
from ripwrap._ranking.paths import name_share
from ripwrap._ranking.scoring import LEAST_WORTH, ChunkCandidate, RankedCandidate, TextContent
from ripwrap._ranking.word_query import MAX_WORD_CHARS, WordQuery, rough_stem, to_nfc

MAX_TEXT_CHARS = 200_000
"""Maximum number of characters of a file that is split into passages."""

_NAME_SHARE = 1.0
"""Weight of the name of a definition; the weight of its words is 1."""
_BM25_K1, _BM25_B = 2.5, 0.8
"""BM25's k1 and b: further matches of a word count little, and long definitions have a disadvantage."""
_NO_FUNCTION = 0.5
"""Factor for a class without its methods, and for the lines around definitions: descriptions are mostly of functions.
"""
_INNER_FACTOR = 2.0
"""Factor by which an inner part of a long definition must be better than its first part to be shown instead."""
_MAX_GAP_CHARS = 4
"""Maximum number of characters (ends of lines) between passages that are neighbours."""
_MAX_LEAD_LINES = 8
"""Maximum number of lines of decorators and comments above a definition that belong to its passage."""
_MAX_DEFINITIONS = 5_000
"""Maximum number of definitions of a file that is split into passages; such a file is no code to read."""


class _Unit(NamedTuple):
    """A definition without the definitions in it, or the text before the first definition."""

    passages: Sequence[Chunk]
    names: Collection[str]
    chars: int
    depth: float
    is_function: bool


class Choice(NamedTuple):
    """Passage that answers a query, with its value; the value of the best passage of a file is the highest."""

    chunk: Chunk
    value: float
    is_definition: bool


class Depth(NamedTuple):
    """Number of definitions that are shown of a file; more of them find more lines, but fewer files."""

    definitions: Sequence[int]
    power: float


BROAD = Depth((3, 2, 1), 0.8)
"""Few definitions of many files, for a list of results."""
DEEP = Depth((10, 10, 8, 5, 3, 2, 1), 0.3)
"""More definitions of the best files, for an answer that shows the code."""


def show_passages(
    query: WordQuery,
    ranked: Iterable[RankedCandidate],
    source_of: Callable[[ChunkCandidate], SourceText | None],
    limit: int | None,
    depth: Depth = BROAD,
) -> list[RankedCandidate]:
    """Show, in place of the best chunk of each file, its best definition; and further definitions of the best files.

    Other chunks of a file are kept if they have no line of these definitions. A short or very long text is not split.
    """
    entries: list[RankedCandidate] = []
    shown: dict[str, list[Chunk]] = {}
    texts: set[str] = set()
    ranked = iter(ranked)
    first = list(islice(ranked, limit))  # each is the best one of a file
    read_code([source for entry in first if (source := source_of(entry.candidate)) is not None])
    for entry in chain(first, ranked):
        if limit is not None and sum(one.score >= entry.score for one in entries) >= limit:
            break
        one = entry.candidate
        if one.path in shown:
            known = shown[one.path]
            if not any(one.start_line <= chunk.end_line and chunk.start_line <= one.end_line for chunk in known):
                entries.append(entry)
            continue
        source = source_of(one)
        text = "" if source is None else source.text
        most = depth.definitions[min(len(shown), len(depth.definitions) - 1)]
        splits = source is not None and MAX_CHUNK_CHARS < len(text) <= MAX_TEXT_CHARS
        best = best_passages(query, text, source.code) if source is not None and splits else []
        best = _joined([*best[:1], *(found for found in best[1:] if found.is_definition)][:most])
        shown[one.path] = [found.chunk for found in best] or [Chunk(0, 0, one.start_line, one.end_line)]
        if not best:
            entries.append(entry)
        for number, (chunk, value, _) in enumerate(best):
            content = text[chunk.start : chunk.end]
            if number and content in texts:  # a copy of a definition of another file
                continue
            texts.add(content)
            passage = replace(one, start_line=chunk.start_line, end_line=chunk.end_line, content=TextContent(content))
            score = entry.score * min(1.0, value / best[0].value if best[0].value else 1.0) ** depth.power
            reasons = ["a further definition, or part of one, in its file"] if number else entry.reasons
            entries.append(RankedCandidate(passage, score if number else entry.score, reasons))
    entries.sort(key=lambda entry: -entry.score)
    return entries[:limit]


def _joined(best: Iterable[Choice]) -> list[Choice]:
    """Join passages that overlap, such as a class and a method in it, and neighbours that are short together."""
    joined: list[Choice] = []
    for found in best:
        for place, other in enumerate(joined):
            if whole := _whole(found.chunk, other.chunk):
                apart = [one for one in joined[place + 1 :] if not whole.start <= one.chunk.start < whole.end]
                joined[place:] = [other._replace(chunk=whole), *apart]
                break
        else:
            joined.append(found)
    return joined


def _whole(one: Chunk, other: Chunk) -> Chunk | None:
    """Return a passage with two passages, one of which may contain the other; `None` if they are apart or too long."""
    first, second = sorted((one, other))
    if second.start < first.end:
        return first
    if second.start - first.end > _MAX_GAP_CHARS or second.end - first.start > MAX_CHUNK_CHARS:
        return None
    return first._replace(end=second.end, end_line=second.end_line)


def best_passages(query: WordQuery, text: str, code: CodeNames) -> list[Choice]:
    """Return a passage of each definition that has a word of the query, the best first.

    If the query is a name, all parts of its definitions come first; the case of letters does not matter.
    """
    units = _units(text, code)
    asked = {symbol.casefold() for symbol in query.symbols if query.symbolic}
    defining = [row for row, name in code.names if to_nfc(name).casefold() in asked]
    worths = query.weighted(dict.fromkeys(query.words, 1.0))
    symbols: Mapping[str, float] = {} if query.long is None else query.long.symbols
    wanted = {rough_stem(word): worths[word] for word in reversed(query.words)}
    every_count = iter(count_stems(text, [one for unit in units for one in unit.passages], wanted))
    counts = [list(islice(every_count, len(unit.passages))) for unit in units]
    of_units = [one[0] if len(one) == 1 else sum(one, Counter[str]()) for one in counts]
    having = Counter(chain.from_iterable(of_units))
    value = {stem: worth * math.log(1 + len(units) / max(having[stem], 1)) for stem, worth in wanted.items()}
    every = sum(value.values())
    of_word = {word: value.get(rough_stem(word), LEAST_WORTH) for word in query.title}
    mean = len(text) / len(units) if units else 1.0

    def of_words(stems: Mapping[str, int], chars: int) -> float:
        if not stems:
            return 0.0
        often = _BM25_K1 * (1 - _BM25_B + _BM25_B * chars / mean)
        return (
            sum(worth * stems[stem] / (stems[stem] + often) for stem, worth in value.items() if stem in stems) / every
        )

    found: list[tuple[bool, Choice]] = []
    for place, unit in enumerate(units):
        named = max(
            (max(name_share(name, query.title, of_word), symbols.get(name, 0.0)) for name in unit.names), default=0.0
        )
        worth = of_words(of_units[place], unit.chars) + _NAME_SHARE * named
        worth *= 1.0 if unit.is_function else _NO_FUNCTION
        first = shown = unit.passages[0]
        if len(unit.passages) > 1:
            sizes = (one.end - one.start for one in unit.passages)
            values = [*map(of_words, counts[place], sizes)]
            best = values.index(max(values))
            shown = unit.passages[best] if values[best] > _INNER_FACTOR * (values[0] + named) else first
        defines = bisect_left(defining, first.start_line - 1) < bisect_left(defining, first.end_line)
        if worth or defines:
            chunk = _with_inner(units, place) if shown is first else shown
            rest = unit.passages[1:] if defines and shown is first else ()  # a name asks for its whole definition
            found += [(defines, Choice(one, worth, bool(unit.names))) for one in (chunk, *rest)]
    found.sort(key=lambda one: (not one[0], -one[1].value, one[1].chunk.start))
    return [choice for _, choice in found]


def _with_inner(units: Sequence[_Unit], place: int) -> Chunk:
    """Return the first passage of a definition, with as many of the definitions in it as fit, such as methods."""
    chunk = units[place].passages[0]
    if len(units[place].passages) > 1:
        return chunk
    for inner in islice(units, place + 1, None):
        last = inner.passages[-1]
        if inner.depth <= units[place].depth or last.end - chunk.start > MAX_CHUNK_CHARS:
            break
        chunk = chunk._replace(end=last.end, end_line=last.end_line)
    return chunk


@lru_cache(maxsize=32)
def _units(text: str, code: CodeNames) -> tuple[_Unit, ...]:
    """Split a text at its definitions; each line with text is in one passage."""
    lines = text.split("\n")
    if len(code.definitions) > _MAX_DEFINITIONS:
        return ()
    named = dict(code.names)
    begins: dict[int, tuple[float, bool, list[str]]] = {}
    depths: list[int] = []
    for one in code.definitions:
        depths.append(depths[one.parent] + 1 if one.parent >= 0 else 0)
        name = to_nfc(named.get(one.line, ""))
        if name and len(name) <= MAX_WORD_CHARS:
            around = code.definitions[one.parent].name if one.parent >= 0 else ""
            first = max(one.first, one.line - _MAX_LEAD_LINES)
            *_, names = begins.setdefault(first, (depths[-1], one.kind == "function", []))
            names += [name, f"{around}_{name}"] if around else [name]
    begins.setdefault(0, (math.inf, False, []))
    order = sorted(begins)
    offsets = list(accumulate(map((1).__add__, map(len, lines)), initial=0))
    units: list[_Unit] = []
    for place, first in enumerate(order):
        last = order[place + 1] if place + 1 < len(order) else len(lines)
        piece = text[offsets[first] : min(offsets[last], len(text))]
        chunks = without_blank_lines(piece, window_chunks(piece))
        passages = [chunk.moved(offsets[first], first) for chunk in chunks]
        if passages:
            depth, is_function, names = begins[first]
            units.append(_Unit(passages, names, len(piece), depth, is_function))
    return tuple(units)
