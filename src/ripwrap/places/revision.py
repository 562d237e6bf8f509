"""Sources of the files of a git revision, and of all versions of files in a history, for a query."""

from collections.abc import Mapping

from ripwrap._ripgrep.query import Query
from ripwrap.options import Directories, size_in_bytes
from ripwrap.sources.dates import check_date
from ripwrap.sources.git import RevisionSource, check_revision
from ripwrap.sources.git_history import HistorySource


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
