"""Models of the places where a name is defined and used, and the confidence that they mean the same name; no I/O."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ripwrap._code.outline import Section
from ripwrap._text import FsPath, Text, shown, shown_path
from ripwrap.models import Model, PathError

ReferenceKind: TypeAlias = Literal["definition", "import", "call", "mention"]
ReferenceSyntax: TypeAlias = Literal["code", "string", "comment", "text"]
Confidence: TypeAlias = Literal["high", "medium", "low"]

CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")

MAX_DEPTH = 5
"""Maximum number of uses on the way from a place to the name."""

_EXPLICIT_IMPORTS = frozenset({"python", "cython", "starlark", "javascript", "typescript", "tsx"})
"""Languages in which a file has a name of another file only if it imports the name."""
_PACKAGE_SCOPES = frozenset({"go", "java", "kotlin", "swift", "csharp", "scala", "c", "cpp", "c header"})
"""Languages in which the files of a directory usually share their names."""
_CONSTRUCTORS = frozenset({"__init__", "__new__", "constructor", "__construct", "initialize", "init"})
"""Names of methods that are called by the name of their class."""
_OWN_RECEIVERS = frozenset({"self", "cls", "this", "Self", "super", "$this", "static", "parent"})


class Reference(Model, frozen=True):
    """Place where a name is defined or used.

    Attributes:
        path: Path of the file.
        line: Number of the line, from 1.
        column: Column of the first character of the name, from 1, in characters.
        text: Text of the line without white space at its ends, cut to 200 characters.
        kind: `definition`, `import`, `call`, or `mention`, which is any other use.
        syntax: Part of the file: `code`, a `string`, a `comment`, or `text` in a document or an unknown format. Outside
            of `code`, the kind is always `mention`.
        confidence: `high` if the name most probably means one of the definitions, because the file defines or imports
            it; `medium` if it may, for example a method with a name that only one class has; `low` for strings,
            comments, names of local variables and arguments, and methods with a name that several classes have.
        enclosing: Innermost definition around the line; `None` at the top level, or if the file was not read as a
            whole.
        chain: Names of the definitions on the way to the name that was searched, the one that this place uses first;
            empty if the place has the name itself.
    """

    path: FsPath
    line: int
    column: int
    text: Text
    kind: ReferenceKind
    syntax: ReferenceSyntax
    confidence: Confidence
    enclosing: Section | None = None
    chain: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the path, the line with its number, the kind and the definition around it."""
        about = self.kind if self.syntax in ("code", "text") else f"{self.kind} in a {self.syntax}"
        about += f" of {', which uses '.join(map(shown, self.chain))}" if self.chain else ""
        around = f" in {self.enclosing.name}" if self.enclosing and self.enclosing.name else ""
        return f"{shown_path(self.path)}:{self.line}: {shown(self.text)} ({about}{around}, {self.confidence})"


class References(Model, frozen=True):
    """Definitions and uses of a name, as `references()` returns them.

    Attributes:
        root: Directory that was searched, as an absolute path; empty if no directory was searched.
        name: Name that was searched.
        definitions: Definitions of the name, in the order of their paths and lines.
        uses: Other places that have the name, in the same order.
        callers: With `depth`, uses of the definitions around the uses, and so on, those with the shortest chain first.
        total_lines: Number of lines that have the name; a lower bound if `exact` is False.
        exact: True if all files were searched to their ends.
        truncated: True if there are more lines with the name than the answer has.
        errors: Paths that could not be read.
        summary: Sentences about what was found and what was not looked at.
        message: The summary, and sentences about uses beyond the limit and about unreadable paths.
    """

    root: str
    name: str
    definitions: tuple[Reference, ...]
    uses: tuple[Reference, ...]
    callers: tuple[Reference, ...] = ()
    total_lines: int
    exact: bool
    truncated: bool
    errors: tuple[PathError, ...] = ()
    summary: str
    message: str

    def __str__(self) -> str:
        """Return a line for each definition and use, and the message."""
        return "\n".join([*map(str, (*self.definitions, *self.uses, *self.callers)), self.message])


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Place that has a name, as its file alone tells."""

    line: int
    column: int
    kind: ReferenceKind
    syntax: ReferenceSyntax
    is_member: bool = False
    receiver: str = ""
    is_local: bool = False
    enclosing: Section | None = None
    owner: str = ""


@dataclass(frozen=True, slots=True)
class FileOccurrences:
    """Places of one file that have a name."""

    path: str
    language: str
    lines: dict[int, str]
    occurrences: tuple[Occurrence, ...]
    imports_all: bool = False
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    imported: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    package: str = ""

    @property
    def folder(self) -> str:
        """Path of the directory of the file."""
        return self.path.replace("\\", "/").rpartition("/")[0]

    @property
    def module(self) -> str:
        """Name of the file without its extension."""
        return self.path.replace("\\", "/").rpartition("/")[2].partition(".")[0]


@dataclass(slots=True)
class Definitions:
    """What is known about the definitions of a name in all files."""

    owners: set[str] = field(default_factory=set[str])
    is_free: bool = False
    folders: set[str] = field(default_factory=set[str])
    modules: set[str] = field(default_factory=set[str])
    count: int = 0

    @classmethod
    def of(cls, files: Iterable[FileOccurrences], owner: str) -> "Definitions":
        """Collect the definitions of all files; only those of `owner`, a class or module, if it is not empty."""
        found = cls()
        for file in files:
            every = [one for one in file.occurrences if one.kind == "definition"]
            found.count += len({one.owner for one in every if one.owner}) + any(not one.owner for one in every)
            own = [one for one in every if not owner or belongs(file, one, owner)]
            if not own:
                continue
            found.folders.add(file.folder)
            found.modules |= {file.module, file.folder.rpartition("/")[2], file.package}
            found.owners |= {one.owner for one in own if one.owner}
            found.is_free = found.is_free or any(not one.owner for one in own)
        return found


def belongs(file: FileOccurrences, one: Occurrence, owner: str) -> bool:
    """Return True if a definition is one of a class, module or package with the name `owner`."""
    around = parts_of(one.enclosing) if one.enclosing else []
    return owner in (one.owner, file.module, file.package, *around[:-1])


def narrowed_owner(files: Iterable[FileOccurrences], owner: str) -> tuple[str, bool]:
    """Return the owner whose definitions are meant, and True if it is the one that was asked for.

    A package has a name that its file, such as `__init__.py`, imports from one of its modules: the owner is then empty,
    which is any. It is also empty for an object, such as `self`, and for a name that has no such definition.
    """
    if not owner or owner in _OWN_RECEIVERS:
        return "", True
    every = list(files)
    if any(one.kind == "definition" and belongs(file, one, owner) for file in every for one in file.occurrences):
        return owner, True
    exports = any(
        one.kind == "import" and owner in (file.module, file.folder.rpartition("/")[2])
        for file in every
        for one in file.occurrences
    )
    return "", exports


def rate(file: FileOccurrences, one: Occurrence, known: Definitions, owner: str) -> Confidence:
    """Return the confidence that a place means one of the definitions."""
    if one.syntax != "code" or one.is_local:
        return "low"
    if one.kind == "definition":
        return "high" if not owner or belongs(file, one, owner) else "low"
    if one.kind == "import":
        if one.is_member or (known.owners and not known.is_free):
            return "low"
        return "high" if known.is_free else "medium"
    if one.is_member:
        receiver = file.aliases.get(one.receiver, one.receiver)
        only = known.count == 1 and bool(known.owners)
        has_module = file.language not in _EXPLICIT_IMPORTS or one.receiver in file.imported
        if receiver in known.owners or (known.is_free and receiver in known.modules and has_module):
            return "high"
        if one.receiver in file.modules:
            return "low"  # as in `re.compile`
        if receiver in _OWN_RECEIVERS and _classes_around(one) & known.owners:
            return "high" if receiver != "super" else "medium" if only else "low"
        # `loader` is probably an object of the class `BaseLoader`.
        word = receiver.strip("_").lower()
        named_like = len(word) > 2 and any(owner.lower().endswith(word) for owner in known.owners)
        return "medium" if only or named_like else "low"
    return _rate_free(file, one, known)


def _classes_around(one: Occurrence) -> set[str]:
    return {*parts_of(one.enclosing)} if one.enclosing else set()


def parts_of(section: Section) -> list[str]:
    """Return the parts of a qualified name, such as `Shop` and `add` of `Shop.add` or `Shop::add`."""
    return section.name.replace("::", ".").split(".")


def called_name(section: Section) -> str:
    """Return the name by which a definition is used, with its class; empty for what syntax calls, as `__add__`."""
    parts = parts_of(section)
    if len(parts) > 1 and parts[-1] in _CONSTRUCTORS:
        parts.pop()
    return "" if parts[-1].startswith("__") and parts[-1].endswith("__") else ".".join(parts[-2:])


def _rate_free(file: FileOccurrences, one: Occurrence, known: Definitions) -> Confidence:
    own = any(
        (other.kind == "import" and not other.is_member) or (other.kind == "definition" and not other.owner)
        for other in file.occurrences
        if not other.is_local
    )
    if known.owners and not known.is_free and file.language in _EXPLICIT_IMPORTS:
        return "low"
    if own:
        return "high"
    if file.imports_all:
        return "medium"
    if file.language in _EXPLICIT_IMPORTS:
        return "low"
    if _classes_around(one) & known.owners:
        return "high"
    near = file.language in _PACKAGE_SCOPES and file.folder in known.folders
    return "high" if known.is_free and near else "medium"
