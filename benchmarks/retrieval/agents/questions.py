"""Questions with the lines that answer them: annotated queries of packages, and questions about ripwrap itself."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from retrieval.queries import Corpus, Query, corpora, find_definition

REPOSITORY = "ripwrap"
"""Name of the folder with the sources of ripwrap."""

SOURCES = Path(__file__).parents[3] / "src"
ANNOTATIONS = Path(__file__).with_name("repository.json")
"""Questions about ripwrap, with the names of the definitions that answer them; line numbers would soon be wrong."""


@dataclass(frozen=True)
class Question:
    """Question whose answer is known.

    Attributes:
        text: Question in words, or a name.
        lines: Relevant lines: path of the file, relative to the root, and number of the line.
    """

    text: str
    lines: frozenset[tuple[str, int]]

    @classmethod
    def from_query(cls, query: Query) -> "Question":
        """Convert a query whose lines are annotated."""
        spans = query.lines.items()
        return cls(query.text, frozenset((path, n) for path, (first, last) in spans for n in range(first, last + 1)))


@dataclass(frozen=True)
class Folder:
    """Folder with questions.

    Attributes:
        name: Name in the table.
        root: Path of the folder.
        questions: Questions whose answers are in the folder.
    """

    name: str
    root: Path
    questions: tuple[Question, ...]


def folders(annotations: Path | None) -> Iterator[Folder]:
    """Yield the sources of ripwrap, then the packages with annotated lines.

    Args:
        annotations: Folder of annotated queries, as for the benchmark of ranked search; `None` for ripwrap alone.

    Raises:
        UnavailableError: A definition is missing, or a package cannot be downloaded or lacks an annotated file.
    """
    yield Folder(REPOSITORY, SOURCES, repository_questions(ANNOTATIONS, SOURCES))
    for corpus in corpora(annotations) if annotations else ():
        if questions := with_lines(corpus):
            yield Folder(corpus.name, corpus.root, questions)


def with_lines(corpus: Corpus) -> tuple[Question, ...]:
    """Return the queries of a corpus whose lines are annotated, as questions."""
    return tuple(Question.from_query(query) for query in corpus.queries if query.lines)


def repository_questions(annotations: Path, root: Path) -> tuple[Question, ...]:
    """Return the questions of a file of annotations, with the lines of the definitions as they are now.

    Raises:
        UnavailableError: A definition is missing, or its name is ambiguous.
    """
    questions: list[Question] = []
    for one in json.loads(annotations.read_text()):
        named = ((path, name) for path, names in one["answers"].items() for name in names)
        spans = [(path, find_definition(root / path, name)[1]) for path, name in named]
        lines = frozenset((path, number) for path, span in spans for number in range(span.first, span.last + 1))
        questions.append(Question(one["question"], lines))
    return tuple(questions)
