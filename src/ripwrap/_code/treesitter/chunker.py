"""Split a file into chunks that are its functions, classes and methods; needs the extra `syntax`.

These modules of the package do the work:

languages   has the node types of each grammar that are definitions
parser      turns text into a syntax tree, within a time limit
outline     finds the definitions in a syntax tree, one level at a time
merge       makes the chunks: joins small definitions, splits large definitions
worker      does all of this in another process
"""

from collections.abc import Iterator

from ripwrap._code.treesitter.merge import MAX_DEFINITION_CHARS, Lines, Segment, merge_segments
from ripwrap._code.treesitter.outline import MAX_DEPTH, SyntaxDefinition, SyntaxOutline
from ripwrap._code.treesitter.parser import PARSE_TIMEOUT, load_grammars, parse_outline
from ripwrap._code.windows import WINDOW_VERSION, Chunk, window_chunks

_VERSION = 3


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

    These files are split into windows of lines: files of a language without a grammar, files of over a million
    characters or with a line of over 10,000 characters, files that take the parser longer than `timeout`, and files
    in which a statement has over 1,000 angle brackets, if the parser is slow with these. If the extra `syntax` is not
    installed, or the grammar cannot be loaded, files are also split in this way.

    Source with syntax errors is parsed as far as possible. Hostile source may make a parser crash: use
    `worker.SyntaxChunker` for files that you do not trust.
    """
    outline = parse_outline(path, text, MAX_DEFINITION_CHARS, timeout=timeout)
    if outline is None:
        return list(window_chunks(text))
    lines = Lines(text, outline.lines)
    return list(merge_segments(lines, _segments(lines, outline)))


def _segments(lines: Lines, outline: SyntaxOutline) -> Iterator[Segment]:
    if lines.count:
        whole = SyntaxDefinition(0, lines.count - 1, "", is_namespace=True, node=outline.root)
        yield from _segments_in(lines, outline, whole, None, 0)


def _segments_in(
    lines: Lines, outline: SyntaxOutline, around: SyntaxDefinition, symbol: str | None, depth: int
) -> Iterator[Segment]:
    """Split a definition, or the whole file, into the definitions in it and the lines between them.

    Namespaces and large definitions are split in the same way, up to a maximum depth.
    """
    line = around.first
    for found in outline.definitions_in(around.node, top=depth == 0) if around.node is not None else ():
        # In source with syntax errors, a definition may begin before the previous one has ended.
        first, last = max(found.first, line), min(found.last, around.last)
        if first > last:
            continue
        if line < first:
            opens = around.is_namespace and line == around.first and depth > 0
            yield Segment(line, first - 1, symbol, symbol, 0, opens_namespace=opens)
        line = last + 1
        name = outline.qualified_name(symbol, found.name)
        if depth < MAX_DEPTH and (found.is_namespace or lines.size(first, last) > MAX_DEFINITION_CHARS):
            yield from _segments_in(lines, outline, found._replace(first=first, last=last), name, depth + 1)
        else:
            yield Segment(first, last, name, symbol, 1)
    if line == around.first and depth:
        yield Segment(line, around.last, symbol, symbol, 1)
    elif line <= around.last:
        yield Segment(line, around.last, symbol, symbol, 0)
