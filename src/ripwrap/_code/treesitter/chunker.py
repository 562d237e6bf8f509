"""Split a file into chunks that are its functions, classes and methods; needs the extra `code`.

These modules of the package do the work:

languages   has the node types of each grammar that are definitions
parser      turns text into a syntax tree, within a time limit
outline     finds the definitions in a syntax tree, one level at a time
merge       makes the chunks: joins small definitions, splits large definitions
worker      does all of this in another process
"""

from collections.abc import Iterator

from ripwrap._code.treesitter.merge import MAX_DEFINITION_CHARS, Lines, Segment, merge_segments
from ripwrap._code.treesitter.outline import SyntaxOutline
from ripwrap._code.treesitter.parser import MAX_LINE_CHARS, PARSE_TIMEOUT, load_grammars, parse_outline
from ripwrap._code.windows import WINDOW_VERSION, Chunk, window_chunks

_VERSION = 4


def chunker_version() -> str:
    """Return the version of the rules by which files are split; another version may split the same text differently."""
    grammars = load_grammars()
    if grammars is None:
        return WINDOW_VERSION
    return f"syntax {_VERSION}, semble-grammars {grammars.__version__}"


def syntax_chunks(path: str, text: str, *, timeout: float = PARSE_TIMEOUT) -> list[Chunk]:
    """Split a file at its definitions, or into windows of lines if that is not possible.

    The chunks have all lines of the file, in order. A function, class, method, table, key or section of up to 2,000
    characters is one chunk. The comments, decorators and attributes directly above it belong to this chunk. A larger
    definition, and any namespace, is split into the definitions in it, such as the methods of a class, and the lines
    between them. A larger definition that contains no definitions is split into parts; each part repeats up to three
    lines and 300 characters of the previous part. Small neighbours are joined into chunks of up to 800 characters. A
    neighbour is small if it has only lines between definitions, or if it is a definition of up to three lines and 200
    characters.

    These files are split into windows of lines: files of a language without a grammar, files of over two million
    characters or with a line of over 10,000 characters, files that take the parser longer than `timeout`, and files in
    which a statement has over 1,000 angle brackets, if the parser is slow with these. If the extra `code` is not
    installed, or the grammar cannot be loaded, files are also split in this way.

    Source with syntax errors is parsed as far as possible. Hostile source may make a parser crash: use
    `worker.CodeReader` for files that you do not trust.
    """
    long = len(max(text.split("\n"), key=len)) > MAX_LINE_CHARS
    outline = None if long else parse_outline(path, text, timeout=timeout)
    if outline is None:
        return list(window_chunks(text))
    lines = Lines(text, outline.lines)
    return list(merge_segments(lines, _Segments(lines, outline).all()))


class _Segments:
    """Segments of a file: its definitions, and the lines between them."""

    def __init__(self, lines: Lines, outline: SyntaxOutline) -> None:
        self._lines = lines
        self._outline = outline
        self._children = outline.children()

    def all(self) -> Iterator[Segment]:
        """Split the whole file into the definitions in it and the lines between them."""
        if self._lines.count:
            yield from self._inside(-1, 0, self._lines.count - 1, None)

    def _inside(self, around: int, first: int, last: int, symbol: str | None) -> Iterator[Segment]:
        """Split a definition, or the whole file, into the definitions in it and the lines between them.

        Namespaces and large definitions are split in the same way.
        """
        outline, lines, line = self._outline, self._lines, first
        for number in self._children.get(around, ()):
            one = outline.found[number]
            # In source with syntax errors, a definition may begin before the previous one has ended.
            start, end = max(one.first, line), min(one.last, last)
            if start > end or not outline.shows(number, MAX_DEFINITION_CHARS):
                continue
            if line < start:
                opens = around >= 0 and outline.found[around].is_namespace and line == first
                yield Segment(line, start - 1, symbol, symbol, 0, opens_namespace=opens)
            line = end + 1
            name = outline.qualified_name(symbol, one.name)
            if one.is_namespace or lines.size(start, end) > MAX_DEFINITION_CHARS:
                yield from self._inside(number, start, end, name)
            else:
                yield Segment(start, end, name, symbol, 1)
        if line == first and around >= 0:
            yield Segment(line, last, symbol, symbol, 1)
        elif line <= last:
            yield Segment(line, last, symbol, symbol, 0)
