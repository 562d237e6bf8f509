"""Source of the files of a git revision, for a query."""

from collections.abc import Mapping

from ripwrap._ripgrep.query import Query
from ripwrap.options import Directories
from ripwrap.sources.git import RevisionSource, check_revision, size_limit


def revision_source(
    query: Query, rev: str, repositories: Directories | None, texts: Mapping[str, bytes | None]
) -> RevisionSource:
    """Return the source that reads the files of a git revision that a query searches.

    `texts` are the texts that will replace files.

    Raises:
        ValueError: `rev` is empty or begins with a dash, or a path is outside of `cwd`.
        TypeError: `rev` is not a str.
    """
    paths, limit = () if query.paths == (".",) else query.paths, size_limit(query.options)
    return RevisionSource(
        query.cwd,
        check_revision(rev),
        paths,
        repositories=repositories,
        max_filesize=limit,
        must_exist=query.must_exist,
        texts=texts,
    )
