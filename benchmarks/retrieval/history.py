"""Corpora of commits: subjects of commits, asked of an older tree, and the source files that the commits changed."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from retrieval.needles import evenly
from retrieval.packages import CACHE, UnavailableError
from retrieval.queries import Corpus, Query

COMMITS = "commits"
QUERIES = 100
"""Commits of each repository."""

REPOSITORY = Path(__file__).parents[2]
"""Repository of ripwrap."""
BASE, LAST = "11599efb", "048a2309"
"""Revision of ripwrap whose tree is searched, and the last commit that is asked for; 500 commits are between them."""

_MAX_FILES = 3
_MIN_WORDS = 4
_CODE = re.compile(r"\.(?:py|pyx|jsx?|tsx?|mjs|vue|go|rs|java|kt|rb|php|cs|[ch]|cc|cpp|hpp|scala|swift)$")
_NOT_SOURCE = re.compile(
    r"(?:^|/)(?:tests?|testing|spec|__tests__|docs?|examples?|benchmarks?|fuzz|scripts|vendor|_vendor)/"
    r"|(?:^|/)(?:test_[^/]*|conftest|setup|noxfile)\.py$|_test\.\w+$|\.(?:spec|test)\.\w+$|Test\.java$",
    re.IGNORECASE,
)
_DULL = re.compile(r"(?:bump|release|merge|revert|chore|prepare|typo|\d|v\d)", re.IGNORECASE)
_NUMBER = re.compile(r"\s*\(?(?:gh-)?#\d+\)?", re.IGNORECASE)


def commits(repository: Path = REPOSITORY, name: str = "ripwrap", base: str = BASE, last: str = LAST) -> Corpus:
    """Return a corpus whose queries are subjects of commits, and whose files are older than these commits.

    The queries are the commits that changed one to three source files, which are in the older tree, and whose subject
    has at least four words.

    Args:
        repository: Folder of the repository.
        name: Name of the repository.
        base: Revision with the files to search.
        last: Revision of the last commit to ask for; the commits after `base` are asked for.

    Raises:
        UnavailableError: The repository does not have these revisions, for example because its history is shallow.
    """
    root = _tree(repository, base)
    queries = [
        Query(subject, sources, COMMITS)
        for subject, files in _log(repository, f"{base}..{last}")
        if (sources := tuple(path for path in files if _CODE.search(path) and not _NOT_SOURCE.search(path)))
        if len(sources) <= _MAX_FILES and len(subject.split()) >= _MIN_WORDS and not _DULL.match(subject)
        if all((root / path).is_file() for path in sources)
    ]
    return Corpus(f"{COMMITS}/{name}", root, evenly(queries, QUERIES), COMMITS)


def _log(repository: Path, revisions: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the subject and the files of each commit that is not a merge, the newest first."""
    options = ["--no-merges", "--no-renames", "--format=%x00%s", "--name-only", revisions]
    for entry in _git(repository, "log", *options).decode("utf-8", "replace").split("\0")[1:]:
        subject, *files = entry.split("\n")
        yield _NUMBER.sub("", subject), tuple(filter(None, files))


def _tree(repository: Path, revision: str) -> Path:
    """Return a folder with the files of a revision."""
    stored = CACHE / f"{COMMITS}-{revision[:12]}"
    if not stored.exists():
        stored.mkdir(parents=True)
        tar = ["tar", "--extract", "--directory", str(stored)]  # Python 3.11.3's `tarfile` extracts files anywhere
        subprocess.run(tar, input=_git(repository, "archive", revision), check=True)
    return stored


def _git(repository: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(repository), *arguments]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise UnavailableError(f"cannot read the history of {repository}: {error}") from error
