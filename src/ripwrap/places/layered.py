"""Sources of items for a query: files of a revision or history, texts that replace items, insides of archives."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, cast

from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.spool import check_item
from ripwrap._text import raw_bytes
from ripwrap.options import Directories, size_in_bytes
from ripwrap.places.inside import document_cache
from ripwrap.sources.adapters import find_format
from ripwrap.sources.archives import ArchiveSource, check_inside, format_of
from ripwrap.sources.base import AnyItems, Item, Source
from ripwrap.sources.git import RevisionSource, check_revision
from ripwrap.sources.git_history import HistorySource, check_date
from ripwrap.sources.git_process import holds
from ripwrap.sources.reading import DocumentReader


def layered(
    opens: Callable[[], AnyItems],
    texts: Mapping[str, bytes | None],
    formats: tuple[str, ...],
    roots: Sequence[str] = (),
) -> Source:
    """Return the source of items of which some are replaced by texts, and of what is inside of them."""
    items = opens()
    source = items if isinstance(items, Source) else _Plain(cast("Iterable[Item]", items))
    if texts:
        source = _Replaced(source, texts, roots)
    return _Opened(source, check_inside(formats)) if formats else source


class _Plain(Source):
    """Source of the items of an iterable."""

    def __init__(self, items: Iterable[Item]) -> None:
        super().__init__()
        self._items = items

    def __iter__(self) -> Iterator[Item]:
        for item in self._items:
            name, content = check_item(item, files=False)
            if self.selects(name):
                yield name, cast("bytes", content)

    def close(self) -> None:
        """Do nothing: the iterable belongs to the caller."""


class _OnTop(Source):
    """Base class of sources that change the items of another source."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.errors = source.errors
        self._source = source

    def close(self) -> None:
        """Close the other source."""
        self._source.close()


class _Replaced(_OnTop):
    """Source whose items are replaced by texts with the same names; new texts come last."""

    def __init__(self, source: Source, texts: Mapping[str, bytes | None], roots: Sequence[str]) -> None:
        super().__init__(source)
        self._texts = {
            name: text for name, text in texts.items() if not roots or any(holds(one, name) for one in roots)
        }

    def __iter__(self) -> Iterator[Item]:
        self._source.selects, self._source.deadline = self.selects, self.deadline
        left = dict(self._texts)
        for name, content in self._source:
            if name not in self._texts:
                yield name, content
                continue
            text = left.pop(name, None)
            if text is not None:
                yield name, text
        for name, text in left.items():
            if text is not None and self.selects(name):
                yield name, text


class _Opened(_OnTop):
    """Source that yields the items of another source, and what is inside of them."""

    def __init__(self, source: Source, formats: tuple[str, ...]) -> None:
        super().__init__(source)
        self._formats = formats
        reader = DocumentReader(document_cache())
        self._archives = ArchiveSource("", (), formats, follow=False, reader=reader)
        self._archives.errors = source.errors

    def __iter__(self) -> Iterator[Item]:
        self._source.deadline = self._archives.deadline = self.deadline
        self._archives.selects = self.selects
        self._source.selects = lambda name: self.selects(name) or format_of(name, self._formats) is not None
        try:
            for name, content in self._source:
                kind = format_of(name, self._formats)
                if kind is None:
                    if self.selects(name):
                        yield name, content
                elif find_format(kind) is None or self.selects(name):
                    yield from self._archives.members(name, _opened(content))
                del content  # the next item needs the memory
        finally:
            self._archives.reader.close()

    def close(self) -> None:
        """Close the other source, and end the process that reads documents."""
        super().close()
        self._archives.close()


def _opened(content: Any) -> IO[bytes]:
    """Return the content of an item as a file, at its start."""
    if hasattr(content, "readinto"):
        file = cast("IO[bytes]", content)
        file.seek(0)
        return file
    return io.BytesIO(raw_bytes(content) if isinstance(content, str) else bytes(content))


def revision_source(
    query: Query, rev: str, repositories: Directories | None, texts: Mapping[str, bytes | None]
) -> RevisionSource:
    """Return the source that reads the files of a git revision that a query searches.

    `texts` are the texts that will replace files.
    """
    return RevisionSource(
        query.cwd,
        check_revision(rev),
        query.roots,
        repositories=repositories,
        max_filesize=size_in_bytes(query.options.get("max_filesize")),
        must_exist=query.must_exist,
        texts=texts,
    )


def history_source(query: Query, rev: str, since: str | None, repositories: Directories | None) -> HistorySource:
    """Return the source that reads the versions of files in a git history that a query searches."""
    checked = check_revision(rev), check_date(since), query.roots
    limit = size_in_bytes(query.options.get("max_filesize"))
    return HistorySource(
        query.cwd, *checked, repositories=repositories, max_filesize=limit, must_exist=query.must_exist
    )
