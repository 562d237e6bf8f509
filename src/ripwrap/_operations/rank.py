"""Rank code without an index: rg finds the files with the words of a query, then their chunks are ranked."""

import logging
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Unpack

from ripwrap._code.treesitter.merge import EMPTY_CHUNK, Chunk, window_chunks, without_blank_lines
from ripwrap._ranking.bm25 import bm25, count_stems, log_remark
from ripwrap._ranking.document import (
    MAX_FILE_BYTES,
    PARSE_SECONDS,
    SourceChunk,
    SourceText,
    cut_to_limit,
    decode_source,
    read_code,
    to_ranked_chunk,
)
from ripwrap._ranking.passages import BROAD, Depth, show_passages
from ripwrap._ranking.paths import NAMED, match_path, names_in, path_weight
from ripwrap._ranking.scoring import NO_EVIDENCE, POOL_SIZE, ChunkCandidate, rank_candidates, score_paths, word_worths
from ripwrap._ranking.word_query import (
    WordQuery,
    identifier_parts,
    is_unspaced,
    joined_parts,
    parse_query,
    rough_stem,
    signed_forms,
    spell_languages,
    to_nfc,
    unicode_forms,
)
from ripwrap._ripgrep.command import files_query, words_query
from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.named_paths import must_exist
from ripwrap._ripgrep.page_collector import ListingCollector, TermCounts
from ripwrap._ripgrep.progress import Meter, OnProgress, count_words
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap._signature import lists_options
from ripwrap._system.concurrency import CANCELLED
from ripwrap._system.safe_open import open_regular_file
from ripwrap._text import as_utf8, in_seconds, shown
from ripwrap.binary.resolver import Rg
from ripwrap.errors import Hint, HintedText, named_paths
from ripwrap.models import PathError
from ripwrap.options import VISIBLE_FILES, FileOptions, StrPath, check_callback, check_limit, check_timeout
from ripwrap.places.where import refuse_places
from ripwrap.results import RankedChunk

MAX_FILES_READ = 40
"""Maximum number of files that are read to rank their chunks."""

DEFINITION_TERM = "\0"
"""Key in the counts of a file, for the number of possible definitions of the query's symbols. The other keys are stems
(beginnings of words), with their number of matches.
"""

NAME_TERM = "\1"
"""Key in the counts of a file whose name is in the query; see `names_in()`."""

_COPIES_PER_FILE = 3
_COMPARED = 10
"""Number of files, as a multiple of the files to read, that are compared by content and path together."""
_BY_CONTENT = 0.6
"""Share of the files to read that are chosen by their content alone, for a long query."""

DEFINITION_PREFIX = (
    r"\b(?:c(?:lass|onst)|def|f(?:un(?:c(?:tion\*?)?)?|n)|interface|s(?:truct|ub|tatic)|enum|t(?:rait|ype(?:def)?)"
    r"|m(?:odule|acro_rules!)|namespace|protocol|object|record|union|let|va[lr])"
    r"[ \t]+(?:\([^()\n]*\)[ \t]*)?(?:[\w.:]+(?:\.|::))?"
)
"""Pattern (for Python's `re` and for rg) for the text before a name that may be defined: a keyword, perhaps a receiver
in parentheses (Go), and perhaps a qualifier such as `Server.`. It chooses files to read; the parser decides.
"""
# Grouped by first letters, because Python's `re` takes 1.5 times as long for a plain list of words.

_TERMS = (DEFINITION_TERM, NAME_TERM)
_PREFIX = re.compile(DEFINITION_PREFIX)
_VARIABLE_OF_TYPE = re.compile(r"(?:const|static)[ \t].*(?:[&*]|[ \t]\w)|const[ \t].*::.*")
"""Pattern for a variable of C++ or Java, such as `const absl::string_view x`, which does not define its type."""
_SEPARATORS = re.compile(r"\W+")
_BM25_K1 = 4.0
"""BM25's k1: with a higher value, further matches of the same word count more."""
_BM25_B = 0.5
"""BM25's b, from 0 to 1: with a higher value, matches in large files count less."""


def choose_files(
    query: WordQuery,
    files: Mapping[str, Mapping[str, int]],
    sizes: Mapping[str, int],
    files_with: Mapping[str, int],
    total: int,
) -> list[str]:
    """Return the files to read, the best first: `MAX_FILES_READ` and their copies.

    Files of the same size with the same counts may be copies, of which only one is a result. So they count as one file,
    and at most `3 * MAX_FILES_READ` of them are added.

    The score of a file begins with BM25: a word counts more if fewer files have it. Each further match of a word counts
    less than the match before, and a match in a large file counts less than in a small file. A word in the name of the
    file or of its directory counts more than all matches of this word in the file. If the file may define a symbol of
    the query, or the query is its name without the extension, its score becomes higher than the scores of all other
    files. At the end, the scores of files that queries rarely ask for, such as tests, are multiplied by a factor below
    1. Files whose whole name is in the query come first in any case.
    """
    # BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009), with bytes for the
    # length of a document, and worth = log(1 + N/n) for the inverse document frequency, which is positive for every
    # word:
    #
    #     worth * matches / (matches + k1 * (1 - b + b * size / mean size))
    #
    # A word that is in the text and in the path adds at most 2 * worth. So adding `most` puts files with a possible
    # definition first; only `path_weight()` may change this order.
    # A word that only paths have counts as a word that one file has.
    having = dict.fromkeys(query_stems(query), 1) | {**files_with}
    worth = {stem: math.log(1 + max(total, 1) / number) for stem, number in having.items() if stem not in _TERMS}
    named = {path: names_in(query).weight(path) for path, counts in files.items() if NAME_TERM in counts}
    most = 2 * sum(worth.values())
    mean = sum(sizes.values()) / max(len(sizes), 1) or 1.0

    def score(path: str) -> float:
        often = _BM25_K1 * (1 - _BM25_B + _BM25_B * sizes[path] / mean)
        counts = files[path]
        score = sum(worth[stem] * number / (number + often) for stem, number in counts.items() if stem not in _TERMS)
        found = match_path(path, query.words)
        score += sum(worth.get(rough_stem(word), 0.0) for word in query.words if word in found.folder + found.stem)
        defining = DEFINITION_TERM in counts
        first = most * (defining or (path in named and query.long is None))
        return (score + first) * path_weight(path, query, defining=defining)

    scores = {path: score(path) for path in sizes}

    def key(path: str) -> tuple[float, float, str]:
        weight = named.get(path, 0.0)
        return -weight if weight >= NAMED else 0.0, -scores[path], path

    order = sorted(sizes, key=key)
    if query.long is not None:
        order = _with_best_paths(query, order, files, scores, files_worths(query, having, total))
    chosen: list[str] = []
    seen: set[tuple[int, frozenset[tuple[str, int]]]] = set()
    for path in order:
        alike = sizes[path], frozenset(files[path].items())
        if alike in seen and len(chosen) - len(seen) >= _COPIES_PER_FILE * MAX_FILES_READ:
            continue
        if alike not in seen and len(seen) == MAX_FILES_READ:
            break
        seen.add(alike)
        chosen.append(path)
    return chosen


def _with_best_paths(
    query: WordQuery,
    order: Sequence[str],
    files: Mapping[str, Mapping[str, int]],
    scores: Mapping[str, float],
    worths: Mapping[str, float],
) -> list[str]:
    """Return files in the order in which they are chosen: some of the best, then the best by content and path together.

    The files whose content has the most words come first. The score of the others is a part of what
    `rank_candidates()` adds up. `order` has the paths with the best scores first.
    """
    number, compared = int(MAX_FILES_READ * _BY_CONTENT), _COMPARED * MAX_FILES_READ
    first, rest = order[:number], order[number:compared]
    rest = [*rest, *(path for path in order[compared:] if NAME_TERM in files[path])]
    highest = max((scores[path] for path in first), default=0.0) or 1.0
    by_path = score_paths(query, {path: DEFINITION_TERM in files[path] for path in (*first, *rest)}, worths)
    return [*first, *sorted(rest, key=lambda path: (-scores[path] / highest - by_path[path], path))]


def files_worths(query: WordQuery, having: Mapping[str, int], total: int) -> dict[str, float]:
    """Return the weight of each word of a query, from the numbers of files that have the stems; see `word_worths()`."""
    return word_worths(query.words, {word: having.get(rough_stem(word), 0) for word in query.words}, total)


def query_stems(query: WordQuery) -> list[str]:
    """Return the stems (beginnings) of a query's words; longer stems first, as a stem may begin with another stem."""
    return sorted(dict.fromkeys(map(rough_stem, query.words)), key=lambda stem: (-len(stem), stem))


def file_pattern(stems: Sequence[str], symbols: Sequence[str] = ()) -> str:
    """Return a regular expression for rg that finds words, and parts of identifiers, that begin with one of the stems.

    A stem in a script without spaces between words, such as Chinese, is found anywhere in a text. The expression also
    finds possible definitions of the symbols, from the keyword to the name, such as `class CookieJar`.
    """
    words = _words_pattern(stems)
    if not symbols:
        return words
    names = "|".join(re.escape(form) for symbol in symbols for form in unicode_forms(symbol))
    bound, prefix = _bound(symbols), DEFINITION_PREFIX.removeprefix(r"\b")
    return rf"{bound}{prefix}(?:{names}){bound}(?:[ \t]*[&*]|[ \t]+\w)?|{words}"


def _bound(words: Iterable[str]) -> str:
    """Return rg's pattern for the beginning or end of some words."""
    # With Unicode's `\b`, rg leaves its fast automaton in each file with a letter outside of ASCII, which made a search
    # eight times as slow. The ASCII one does not match beside such letters
    # (https://docs.rs/regex/latest/regex/#unicode-can-impact-memory-usage-and-search-speed).
    return r"(?-u:\b)" if all(map(str.isascii, words)) else r"\b"


def _words_pattern(stems: Sequence[str]) -> str:
    spaced = [stem for stem in stems if not is_unspaced(stem)]
    inside = [form for stem in stems for form in unicode_forms(stem[:1].upper() + stem[1:])]
    anywhere = "|".join(map(re.escape, inside))
    if not spaced:
        return anywhere
    written = [re.escape(form) for stem in spaced for cased in (stem, stem.upper()) for form in unicode_forms(cased)]
    written += [re.escape(form) for stem in spaced for form in signed_forms(stem)]
    return f"(?:{_bound(spaced)}|_)(?:{'|'.join(written)})|{anywhere}"


def matched_stems(hit: str, stems: Sequence[str]) -> tuple[str, ...]:
    """Return the stems that are counted for a match of `file_pattern()`: the stems with which the match begins.

    For a possible definition, return `DEFINITION_TERM` and the stems of the words in the defined name.
    """
    if prefix := _PREFIX.match(hit):
        name = _SEPARATORS.split(to_nfc(hit[prefix.end() :]))[0]
        inside = {rough_stem(part) for part in identifier_parts(name)}
        found = tuple(stem for stem in stems if stem in inside)
        return found if _VARIABLE_OF_TYPE.fullmatch(hit) else (DEFINITION_TERM, *found)
    word = spell_languages(to_nfc(hit)).casefold().strip("_ ")
    folded = [stem.casefold() for stem in stems]
    return (
        tuple(stem for stem, one in zip(stems, folded, strict=True) if word.startswith(one)) if word in folded else ()
    )


RANK_LIMIT = 10

_LOGGER = logging.getLogger("ripwrap")
_MAX_LINES_PER_FILE = 1_000
"""Maximum number of matching lines that rg prints for a file; more lines hardly change the choice of files."""

_MAX_NAMED = 1_000
"""Maximum number of files that are found because the query has their name: the first in path order."""

MAX_TOTAL_BYTES = 8_000_000
"""Number of bytes, of all files together, after which no further file is read; the best files are read first."""


@named_paths
@lists_options(VISIBLE_FILES)
async def rank(
    query: str,
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    limit: int | None = RANK_LIMIT,
    on_progress: OnProgress | None = None,
    rg: Rg = None,
    **options: Unpack[FileOptions],
) -> list[RankedChunk]:
    """Find the code that answers a question, or that defines a symbol; best results first, without an index.

    rg finds the files that have the words of the query. Words match in any form, and as parts of identifiers. Files
    whose name the query has, such as `package.json`, are also found by their name, and come first. The 40 best files
    are split into chunks of at most 800 characters. The rank of a file depends on BM25 of its best chunks, words of the
    query that are near each other, definitions that the query names, and words in the path. Tests, examples,
    vendored code, text and data rank lower, unless the query asks for them. A result is the definition of a file that
    answers best, or a part of it; then other chunks follow. The same files and query give the same results.

    The first million bytes of a file are read. After eight million bytes of all files, no further file is read.
    Binary files are not searched. The query may be long, such as the text of an issue with a traceback: its title, the
    paths and the names in it count most, and the 16 words that tell most are searched. Of a query of more than 20,000
    characters, the rest is left out. Unreadable files and words that are left out are logged as warnings.
    `RankedChunk.reasons` also says if a query was cut.

    Args:
        query: Words, e.g. "how are cookies stored", or a name, e.g. "CookieJar" or "where is CookieJar defined".
        cwd: The directory to search; globs and `paths` are relative to it.
        paths: Files or directories to search, any number of them; empty is all of `cwd`.
        limit: Maximum number of results; `None` returns all ranked chunks, a few hundred.
        on_progress: Function that is called with a `Progress` while rg looks for the words, at most ten times a second,
            and once at the end. The function runs in this task or thread. An exception in the function ends the
            call.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags; see `FileOptions`. Hidden files (such as `.env`) are searched only with `hidden=True`,
            and links are followed only with `follow=True`. A file or link in `paths` is always searched.

    Raises:
        ValueError: The query has no word of at most 200 characters, `limit` is negative, or a path or option has a NUL.

    It also raises what `files()` raises.
    """
    check_callback(on_progress)
    meter = None if on_progress is None else Meter(on_progress, count_words)
    runner = AsyncRunner(rg, meter=meter)
    request = rank_request(query, cwd, paths, limit, options, timeout=None)
    request = replace(request, search=must_exist(request.search))  # the answer has no place for errors
    results = await run_rank(runner, request)
    if meter is not None:
        meter.end()
    return results


@dataclass(frozen=True, slots=True)
class RankRequest:
    """Checked arguments of `rank()`."""

    query: WordQuery
    stems: Sequence[str]
    search: Query
    listing: Query | None
    limit: int | None
    timeout: float | None
    allowed: Callable[[str], bool] | None
    report: Callable[[Sequence[PathError]], object] | None = None
    depth: Depth = BROAD
    evidence: Mapping[str, float] = field(default_factory=dict[str, float])


def rank_request(
    query: str,
    cwd: StrPath | None,
    paths: StrPath | Iterable[StrPath] | None,
    limit: int | None,
    options: FileOptions,
    *,
    timeout: float | None,
    allowed: Callable[[str], bool] | None = None,
    report: Callable[[Sequence[PathError]], object] | None = None,
) -> RankRequest:
    """Check the arguments, and return the request of `rank()`."""
    refuse_places("rank()", options)
    parsed, limit, timeout = parse_query(query), check_limit(limit), check_timeout(timeout)
    stems = query_stems(parsed)
    pattern = file_pattern(stems, parsed.symbols)
    options = {**VISIBLE_FILES, **options}
    search = words_query(pattern, cwd, paths, options, _MAX_LINES_PER_FILE).without("sort", "sortr")
    listing = files_query(search.cwd, search.paths, options).without("sort", "sortr") if names_in(parsed) else None
    return RankRequest(parsed, stems, search, listing, limit, timeout, allowed, report)


@dataclass(frozen=True, slots=True)
class FileTerms:
    """Files that have words of a query, with the number of matches of each word in each file."""

    files: Mapping[str, Mapping[str, int]]
    having: Mapping[str, int]
    total: int
    sizes: Mapping[str, int]


async def run_rank(run: Runner, request: RankRequest) -> list[RankedChunk]:
    """Find the files with words of the query, and return their best chunks."""
    if request.limit == 0:
        return []
    hits, begun = await _count_terms(run, request)
    if not hits.files:
        return []
    deadline = RankingDeadline(request.timeout, begun)
    return await run.call(lambda: _rank_files(request, hits, deadline))


async def find_terms(run: Runner, request: RankRequest) -> FileTerms:
    """Count the words of the query in each file, so that `choose_files()` can choose files from several directories."""
    hits, _ = await _count_terms(run, request)
    sizes = await run.call(lambda: _sizes(request.search.cwd, hits.files))
    return FileTerms(hits.files, dict(hits.having), hits.total, sizes)


async def _count_terms(run: Runner, request: RankRequest) -> tuple[TermCounts, float]:
    """Return the number of matches of each word in each file, and the time at which rg was started."""
    log_remark(request.query)
    begun = 0.0

    def collector() -> TermCounts:
        nonlocal begun
        begun = time.monotonic()  # each start of rg calls this function; a retry starts rg again
        return TermCounts(lambda hit: matched_stems(hit, request.stems), request.timeout)

    hits = await run.collect(Step(request.search, collector, request.timeout))
    if hits.end is not None:
        hits.end.warn()
        if request.report is not None:
            request.report(hits.end.path_errors())
    if request.listing is not None:
        left = None if request.timeout is None else max(request.timeout - (time.monotonic() - begun), 0)
        named = await _find_named(run, request.query, request.listing, left)
        hits.add({path: {**hits.files.get(path, {}), NAME_TERM: 1} for path in named}, {}, 0)
    return hits, begun


async def _find_named(run: Runner, query: WordQuery, listing: Query, seconds: float | None) -> list[str]:
    """Return the files whose name is in the query; unreadable directories were reported by the search."""
    names = names_in(query)

    def collector() -> ListingCollector[str]:
        return ListingCollector(PathDecoder(), _MAX_NAMED, allowed=lambda path: names.weight(path) > 0)

    return (await run.collect(Step(listing, collector, seconds, metered=False))).items()


@dataclass(frozen=True, slots=True)
class RankingDeadline:
    """Time limit of a ranking, for the work after rg has ended."""

    timeout: float | None = None
    begun: float = 0.0

    def left(self) -> float:
        """Return the seconds that are left."""
        return math.inf if self.timeout is None else self.begun + self.timeout - time.monotonic()

    def check(self) -> None:
        """Raise `TimeoutError` if the deadline has passed or the call is cancelled."""
        if CANCELLED.get().is_set():
            raise TimeoutError("the ranking was cancelled")
        if self.timeout is not None and self.left() < 0:
            said = f"the ranking took more than {in_seconds(self.timeout)}; search fewer files"
            raise TimeoutError(HintedText(said, (", or pass a larger ", Hint("timeout", kind="correct"))))


def _rank_files(request: RankRequest, hits: TermCounts, deadline: RankingDeadline) -> list[RankedChunk]:
    """Return the best chunks of the files that have the words."""
    query, search, allowed = request.query, request.search, request.allowed
    files: Mapping[str, Mapping[str, int]] = hits.files
    if allowed is not None:
        files = {path: counts for path, counts in files.items() if _is_allowed(allowed, path, deadline)}
    order = choose_files(query, files, _sizes(search.cwd, files), hits.having, hits.total)
    worths = files_worths(query, hits.having, hits.total)
    contents = read_raw_files(search, order, deadline)
    return rank_contents(query, contents, request.limit, deadline, worths, request.depth, request.evidence)


def rank_contents(
    query: WordQuery,
    files: Iterable[tuple[str, bytes]],
    limit: int | None,
    deadline: RankingDeadline,
    worths: Mapping[str, float],
    depth: Depth = BROAD,
    evidence: Mapping[str, float] = NO_EVIDENCE,
) -> list[RankedChunk]:
    """Return the best chunks of `files`, which yields the path and the bytes of each file, the best file first."""
    copies: Counter[str] = Counter()
    sources = list(_decode(files, copies))
    of_path = {source.path: source for source in sources}
    results: list[RankedChunk] = []

    def source_of(candidate: ChunkCandidate) -> SourceText:
        deadline.check()
        return of_path[candidate.path]

    read_code(sources, min(PARSE_SECONDS, deadline.left()))
    pool = _pool(query, sources, copies, deadline, worths)
    ranked = rank_candidates(query, pool, worths=worths, evidence=evidence)
    for entry in show_passages(query, ranked, source_of, limit, depth):
        deadline.check()
        results.append(to_ranked_chunk(query, entry, of_path[entry.candidate.path]))
    return results


def _is_allowed(allowed: Callable[[str], bool], path: str, deadline: RankingDeadline) -> bool:
    deadline.check()
    return allowed(path)


def _sizes(cwd: str, paths: Iterable[str]) -> dict[str, int]:
    """Return the size in bytes of each file that still exists."""
    sizes: dict[str, int] = {}
    for path in paths:
        with suppress(OSError):
            sizes[path] = os.stat(os.path.join(cwd, path)).st_size
    return sizes


def read_raw_files(
    search: Query, paths: Iterable[str], deadline: RankingDeadline = RankingDeadline()
) -> Iterator[tuple[str, bytes]]:
    """Yield each path with the first million bytes of the file; files that cannot be read are logged as warnings."""
    for path in paths:
        deadline.check()
        try:
            with open_regular_file(search.cwd, path, follow=search.follows, roots=search.paths) as file:
                raw = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            _LOGGER.warning("%s could not be read: %s", shown(path), error.strerror)
            continue
        yield path, cut_to_limit(raw)


def _decode(files: Iterable[tuple[str, bytes]], copies: Counter[str]) -> Iterator[SourceText]:
    """Yield the texts of the first files with different bytes, and count the other files with the same bytes."""
    left = MAX_TOTAL_BYTES
    first: dict[bytes, str] = {}
    for path, raw in files:
        if raw not in first and len(first) == MAX_FILES_READ:
            return
        left -= len(raw)
        if raw and first.setdefault(raw, path) != path:
            copies[first[raw]] += 1
        elif (source := decode_source(path, raw)) is not None:
            yield source
        if left <= 0:
            return


def _pool(
    query: WordQuery,
    sources: Sequence[SourceText],
    copies: Mapping[str, int],
    deadline: RankingDeadline,
    worths: Mapping[str, float],
) -> list[ChunkCandidate]:
    """Return the chunks to rank."""
    symbols = {*query.symbols}
    stems = {rough_stem(word): worth for word, worth in query.weighted(worths).items()}
    for joined in map(joined_parts, symbols):  # a name counts as much as the word that tells most
        stems = dict.fromkeys((joined, joined.replace("_", "")), max(stems.values())) | stems
    rows: list[tuple[SourceText, Chunk, bool]] = []
    counts: list[Counter[str]] = []
    for source in sources:
        deadline.check()
        chunks = list(without_blank_lines(source.text, window_chunks(source.text)))
        if not chunks and names_in(query).weight(source.path):
            chunks = [EMPTY_CHUNK]
        path = as_utf8(source.path)
        (in_path,) = count_stems(path, [Chunk(0, len(path), 1, 1)], stems)
        defining = [row + 1 for row, name in source.code.names if to_nfc(name) in symbols]
        for chunk, found in zip(chunks, count_stems(source.text, chunks, stems), strict=True):
            counts.append(found + in_path + in_path)
            rows.append((source, chunk, any(chunk.start_line <= line <= chunk.end_line for line in defining)))
    deadline.check()
    scores = bm25(counts, [chunk.end - chunk.start for _, chunk, _ in rows], stems)
    pool: list[ChunkCandidate] = []
    files = set[str]()
    others = 0
    for row in sorted(filter(counts.__getitem__, range(len(rows))), key=lambda row: -scores[row]):
        source, chunk, defines = rows[row]
        others += defines
        if len(pool) < POOL_SIZE or source.path not in files or (defines and others <= POOL_SIZE):
            files.add(source.path)
            known = source.path, chunk.start_line, chunk.end_line, SourceChunk(source, chunk), scores[row]
            pool.append(ChunkCandidate(*known, copies=copies.get(source.path, 0)))
    return pool
