"""Combine the results of many roots into one result, in bounded memory; no I/O."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ripwrap._operations.rank import MAX_TOTAL_BYTES, FileTerms, choose_files, files_worths
from ripwrap._ranking.document import MAX_FILE_BYTES
from ripwrap._ranking.word_query import WordQuery
from ripwrap._ripgrep.page_collector import TermCounts, path_order, shares
from ripwrap._text import plural
from ripwrap.options import check_callback
from ripwrap.repositories.models import RepositoriesResult, Root, RootChunk, RootError, RootMatches, Worker
from ripwrap.repositories.requests import MatchesRequest, RootTask
from ripwrap.repositories.scheduler import Arrival
from ripwrap.results import FileMatches, GrepResult, RankedChunk


class EndedRoots:
    """Counter of the roots that have ended."""

    def __init__(self, tasks: Iterable[RootTask[Any]], report: Callable[[int, int], object] | None) -> None:
        check_callback(report)
        self._roots = [task.root.name for task in tasks]
        self._left = Counter(self._roots)
        self._total = len(self._left)
        self._report = report

    def end(self, number: int) -> bool:
        """Count the end of the task with this number; return True if it was the last task of its root."""
        name = self._roots[number]
        self._left[name] -= 1
        if self._left[name]:
            return False
        del self._left[name]
        if self._report is not None:
            self._report(self._total - len(self._left), self._total)
        return True


class MatchesCollector:
    """Collector of the page of `Repositories.grep()`; the results of the roots may come in any order.

    Matches that do not fit on the page are dropped early, while other roots are still searched.
    """

    def __init__(self, roots: Sequence[Root], query: str | tuple[str, ...], per_root: int, limit: int) -> None:
        self._roots = roots
        self._places = {root.name: place for place, root in enumerate(roots)}
        self._query = query
        self._per_root = per_root
        self._limit = limit
        self._shards: dict[int, list[tuple[GrepResult, Worker | None]]] = {}
        self._kept: dict[int, RootMatches] = {}
        self._held = 0
        self._matches = self._files = self._matched = self._searched = 0
        self._exact = True
        self.errors: dict[int, list[RootError]] = {}

    def take(self, root: Root, arrival: Arrival[GrepResult]) -> None:
        """Add the page, or the failure, of a root or of a shard (a part of the files of a root)."""
        place = self._places[root.name]
        if isinstance(arrival.item, RootError):
            self._exact = False
            add_error(self.errors.setdefault(place, []), arrival.item)
        elif arrival.item is not None:
            self._shards.setdefault(place, []).append((arrival.item, arrival.worker))

    def end(self, root: Root) -> None:
        """Add the matches of a root to the page, after all its shards have ended. If all shards failed, add nothing."""
        place = self._places[root.name]
        shards = self._shards.pop(place, [])
        if not shards:
            return
        results = [result for result, _ in shards]
        self._searched += 1
        self._exact = self._exact and all(result.exact for result in results)
        files = [file for result in results for file in result.files]
        if len(results) > 1:
            files.sort(key=lambda file: path_order(os.fsencode(file.path)))
        found = RootMatches(
            root=root.name,
            directory=root.path,
            files=_first_matches(files, self._per_root),
            total_matches=sum(result.total_matches for result in results),
            files_matched=sum(result.files_matched for result in results),
            exact=place not in self.errors and all(result.exact for result in results),
            worker=shards[0][1] if len(shards) == 1 and place not in self.errors else None,
        )
        self._matches += found.total_matches
        self._files += found.files_matched
        self._matched += bool(found.total_matches)
        if len(found):
            self._kept[place] = found
            self._held += len(found)
        if self._held > 2 * self._limit:
            self._trim()

    def _trim(self) -> None:
        places = sorted(self._kept)
        counts = [len(self._kept[place]) for place in places]
        for place, count, share in zip(places, counts, shares(counts, self._limit), strict=True):
            found = self._kept[place]
            if not share:
                del self._kept[place]
            elif share < count:
                self._kept[place] = found.model_copy(update={"files": _first_matches(found.files, share)})
        self._held = min(sum(counts), self._limit)

    def result(self) -> RepositoriesResult:
        """Return the page."""
        self._trim()
        errors = [error for place in sorted(self.errors) for error in self.errors[place]]
        return RepositoriesResult(
            query=self._query,
            roots=tuple(self._kept[place] for place in sorted(self._kept)),
            total_matches=self._matches,
            files_matched=self._files,
            roots_matched=self._matched,
            roots_searched=self._searched,
            exact=self._exact,
            truncated=not self._exact or self._matches > self._held,
            errors=tuple(errors),
            message=self._message(errors),
        )

    def _message(self, errors: Sequence[RootError]) -> str:
        searched = plural(self._searched, "root")
        if self._matches:
            least = "" if self._exact else "at least "
            numbers = f"{least}{plural(self._matches, 'match', 'es')} in {plural(self._files, 'file')}"
            numbers += f" of {plural(self._matched, 'root')} ({searched} searched)"
            shown = f"{self._held} of " if self._matches > self._held else ""
            text = f"{shown}{numbers}"
        else:
            text = f"no matches in {searched}"
        sentences = [text[0].upper() + text[1:] + "."]
        if errors:
            sentences.append(
                f"{plural(len(self.errors), 'root')} failed completely or in part. First error: {errors[0]}."
            )
        return " ".join(sentences)


def add_error(errors: list[RootError], error: RootError) -> None:
    """Add a failure of a root, unless another shard of the root has failed in the same way."""
    if all((known.kind, known.message) != (error.kind, error.message) for known in errors):
        errors.append(error)


def _first_matches(files: Iterable[FileMatches], limit: int) -> tuple[FileMatches, ...]:
    kept: list[FileMatches] = []
    for file in files:
        if limit <= 0:
            break
        kept.append(file if len(file.matches) <= limit else file.model_copy(update={"matches": file.matches[:limit]}))
        limit -= len(file.matches)
    return tuple(kept)


class ShardPlanner:
    """Splitter of a root into shards (parts that are searched separately), by the sizes of its files."""

    def __init__(self, task: RootTask[GrepResult], request: MatchesRequest, shards: int) -> None:
        self._task = task
        self._request = request
        self._shards = shards
        self._sizes: list[tuple[str, int]] = []
        self._errors: list[RootError] = []

    def take(self, item: "tuple[str, int] | RootError") -> None:
        """Add a file with its size in bytes, or a failure to list the files."""
        if isinstance(item, RootError):
            self._errors.append(item)
        else:
            self._sizes.append(item)

    def tasks(self) -> list[RootTask[GrepResult]]:
        """Return the tasks of the shards. If no file was listed, return the task of the whole root."""
        if not self._sizes:
            return [self._task]
        unreadable = tuple(path for error in self._errors for path in error.paths)
        shards = split_files(self._sizes, self._shards)
        return [
            replace(
                self._task, request=replace(self._request, files=tuple(files), unreadable=() if number else unreadable)
            )
            for number, files in enumerate(shards)
        ]


def split_files(sizes: Iterable[tuple[str, int]], shards: int) -> list[list[str]]:
    """Split files into at most `shards` lists of about the same size in bytes; files of a directory stay together."""
    folders: dict[str, list[tuple[str, int]]] = {}
    for path, size in sizes:
        folders.setdefault(os.path.dirname(path), []).append((path, size))
    weights = {folder: sum(size for _, size in files) + len(files) for folder, files in folders.items()}
    left = sum(weights.values())
    lists: list[list[str]] = [[]]
    held = 0
    for folder in sorted(folders, key=lambda one: path_order(os.fsencode(one))):
        if lists[-1] and len(lists) < shards and held + weights[folder] / 2 > (held + left) / (shards - len(lists) + 1):
            lists.append([])
            held = 0
        lists[-1] += [path for path, _ in folders[folder]]
        held += weights[folder]
        left -= weights[folder]
    return lists


class TermsCollector:
    """Collector of the counts of a query's words in all roots, as if all roots were in one directory."""

    def __init__(self, query: WordQuery) -> None:
        self._query = query
        self._terms = TermCounts(lambda _: ())
        self._sizes: dict[str, int] = {}
        self._places: dict[str, tuple[Root, str]] = {}

    def take(self, root: Root, terms: FileTerms) -> None:
        """Add the counts of a root."""
        keys = {path: self._key(root, path) for path in terms.files}
        self._terms.add({keys[path]: counts for path, counts in terms.files.items()}, terms.having, terms.total)
        self._sizes.update((keys[path], size) for path, size in terms.sizes.items())
        self._places.update((key, (root, path)) for path, key in keys.items())
        if len(self._places) > 2 * len(self._terms.files):
            self._drop()

    def _key(self, root: Root, path: str) -> str:
        key = os.path.join(root.name, path)
        return os.path.join(root.path, path) if key in self._places else key

    def _drop(self) -> None:
        held = self._terms.files
        self._sizes = {key: size for key, size in self._sizes.items() if key in held}
        self._places = {key: place for key, place in self._places.items() if key in held}

    def choose(self) -> list[str]:
        """Return the keys of the files to read, best first."""
        self._terms.trim()
        self._drop()
        if not self._terms.files:
            return []
        order = choose_files(self._query, self._terms.files, self._sizes, self._terms.having, self._terms.total)
        left, chosen = MAX_TOTAL_BYTES, list[str]()
        for key in order:
            if left <= 0:
                break
            chosen.append(key)
            left -= min(self._sizes[key], MAX_FILE_BYTES)
        return chosen

    def worths(self) -> dict[str, float]:
        """Return the weight of each word of the query; see `files_worths()`."""
        return files_worths(self._query, self._terms.having, self._terms.total)

    def place(self, key: str) -> tuple[Root, str]:
        """Return the root of the file with this key, and the path of the file in the root.

        A key is a path that begins with the name of the root or, if two keys would be equal, with the path of the root.
        """
        return self._places[key]

    def result(self, chunk: RankedChunk) -> RootChunk:
        """Convert a chunk whose path is a key (see `place()`) to a chunk with a root and a path."""
        root, path = self._places[chunk.path]
        return RootChunk.model_construct(None, **{**dict(chunk), "root": root.name, "path": path})
