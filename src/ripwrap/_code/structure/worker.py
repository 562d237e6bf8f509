"""Search texts with ast-grep. Only worker processes import this module, because it imports `ast_grep_py`."""

import json
from bisect import bisect
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias

from ast_grep_py import SgNode

from ripwrap._code.structure.client import LANGUAGES
from ripwrap._code.structure.fixes import Fix, UnreplacedError, broken_line, keep_strings, read_fix, span_of
from ripwrap._code.structure.patterns import BadPatternError, Pattern, parse, read_pattern
from ripwrap._system.subprocess.worker import serve_requests
from ripwrap.models import Span

FoundEdit: TypeAlias = tuple[int, int, str] | str | None
FoundHit: TypeAlias = tuple[int, int, dict[str, tuple[int, int]], FoundEdit]


def serve(seconds: float, idle: float) -> None:
    """Answer the requests of a `CodeWorkers` on stdin until stdin ends; this runs in the worker process."""

    def answer(request: list[bytes]) -> list[bytes]:
        source, language, fix = json.loads(request[0])
        found = _check(source, language, fix) if len(request) == 1 else search(source, language, fix, request[1])
        return [json.dumps(found).encode()]

    serve_requests(answer, seconds, idle)


@lru_cache(maxsize=1)
def _read(source: str, language: str, fix: str | None) -> tuple[Pattern, Fix | None]:
    pattern = read_pattern(source, LANGUAGES[language])
    return pattern, None if fix is None else read_fix(fix, pattern)


def _check(source: str, language: str, fix: str | None) -> dict[str, Any]:
    """Return the texts that each match contains, or the reason why the pattern or the fix cannot be used."""
    try:
        pattern = read_pattern(source, LANGUAGES[language])
    except BadPatternError as error:
        return {"pattern_error": str(error)}
    try:
        _read(source, language, fix)
    except BadPatternError as error:
        return {"fix_error": str(error)}
    return {"literals": pattern.literals}


def search(source: str, language: str, fix: str | None, content: bytes) -> dict[str, Any]:
    """Return the matches in a text, with offsets in bytes, and the first line that does not parse.

    A match is a tuple of its start, its end, the span of each metavariable, and its edit: the start and end of the
    replaced text, and the new text. Instead of an edit, a match that is not replaced has the reason. The edit is `None`
    without `fix`, and for a match inside of a replaced one. The result also has the first line that does not parse
    with the edits, if it parses without them.
    """
    pattern, template = _read(source, language, fix)
    text = content.decode()
    root, html = parse(text, language)
    variables = pattern.by_name
    nodes = root.find_all(pattern=source)
    broken = root.find(kind="ERROR")
    edits = [None] * len(nodes) if template is None or broken else _edits(template, nodes, text, root, html)
    hits: list[FoundHit] = []
    for node, edit in zip(nodes, edits, strict=True):
        place = node.range()
        spans = {name: _code_of(span_of(node, variable), html) for name, variable in variables.items()}
        hits.append((*_code_of((place.start.index, place.end.index), html), spans, edit))
    return {
        "hits": hits if text.isascii() else _in_bytes(text, hits),
        "error_line": None if broken is None else broken.range().start.line + 1,
        "broken_line": broken_line(text, [edit for edit in edits if isinstance(edit, tuple)], root, language),
    }


def _code_of(span: Span, html: Sequence[Span]) -> Span:
    """Return a span without the `?>` at its end, which the parser takes for a semicolon."""
    last = html[max(bisect(html, (span[1],)) - 1, 0)] if html else (0, 0)
    return (span[0], last[0] if last[0] < span[1] < last[1] else span[1])


def _edits(template: Fix, nodes: Sequence[SgNode], text: str, root: SgNode, html: Sequence[Span]) -> list[FoundEdit]:
    """Return the edit of each match, the reason why it is not replaced, or `None` for a match in a replaced one."""
    kept, done = keep_strings(text, root, html) if nodes else "", 0
    edits: list[FoundEdit] = []
    for node in nodes:
        try:
            edit = None if node.range().start.index < done else template.edit(node, text, kept)
            if edit is not None and html:
                start, end = _code_of(edit[:2], html)
                edit = start, end, edit[2]
                if any(start <= first < end and text[first:last] not in edit[2] for first, last in html):
                    raise UnreplacedError("HTML in it would be lost")
        except UnreplacedError as error:
            edits.append(str(error))
        else:
            done = done if edit is None else edit[1]
            edits.append(edit)
    return edits


def _in_bytes(text: str, hits: Sequence[FoundHit]) -> list[FoundHit]:
    """Return the matches, with their offsets converted from characters to bytes."""
    known: dict[int, int] = {}
    done = size = 0
    for offset in sorted({one for hit in hits for one in _offsets(hit)}):
        size += len(text[done:offset].encode())
        known[offset] = size
        done = offset
    return [
        (
            known[start],
            known[end],
            {name: (known[first], known[last]) for name, (first, last) in spans.items()},
            (known[edit[0]], known[edit[1]], edit[2]) if isinstance(edit, tuple) else edit,
        )
        for start, end, spans, edit in hits
    ]


def _offsets(hit: FoundHit) -> list[int]:
    start, end, spans, edit = hit
    return [start, end, *chain.from_iterable(spans.values()), *(edit[:2] if isinstance(edit, tuple) else ())]
