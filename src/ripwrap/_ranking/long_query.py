"""Read a long query, such as the pasted text of an issue: its title, tracebacks, and the paths that it names; no I/O.

A query is long if it has several lines, or many words. Its parts tell different things: the title says what is asked;
a traceback and the paths in the text say where; the rest has the words of the code, between words of the template.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

MAX_QUERY_CHARS = 20_000
"""Maximum number of characters of a query that are read; the rest is left out."""

MENTIONED = 0.5
"""Weight, in the score of a file, of a long query that names the path of the file or has it in a traceback."""

_MIN_CHARS = 160
"""Minimum number of characters of a long query that has several lines."""
_MIN_WORDS = 20
"""A query with more different words than this number is long, also without line ends."""
_MAX_TITLE_CHARS = 400
"""Maximum number of characters of a title."""
_MAX_MENTIONS = 24
"""Maximum number of paths that are compared with the paths of files; those with the highest weights are kept."""

_TEMPLATE_WORDS = """
description expected actual behavior behaviour reproduce reproducing reproduction steps step version versions bug issue
issues summary example examples code output outputs result results outcome traceback recent call last file line most
environment info information additional context following get gets got see seems like want wants need needs use uses
using used try tries tried run running print prints work works working way make makes think thank thanks please hello
note problem problems however actually currently instead given another really something anything one two case cases
happen happens happened report reported system setup windows linux macos mac os ubuntu darwin gcc clang python python3
site packages lib usr local home bin users user opt env conda miniconda anaconda module stdin input def self return
import none true false ticket attachment modified duplicate github com org www http https pull request fix fixed fixes
patch describe
"""
TEMPLATE_WORDS = frozenset(_TEMPLATE_WORDS.split())
"""Words of the templates of issues, of environments and of tracebacks; they count only if the title has them."""

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_BLOB = re.compile(r"https?://[^\s/]+/[^\s/]+/[^\s/]+/(?:blob|tree|raw)/[^\s/]+/([^\s#?)\]>]+)")
"""Pattern for the address of a file on a site such as GitHub; group 1 is its path in the repository."""
_URL = re.compile(r"https?://\S+")
_ORIGIN = re.compile(r"https?://[^\s/]+/(?=[^\s()]{0,400}:\d+:\d)")
"""Pattern for the beginning of an address in the traceback of a browser."""
_NO_TITLE = re.compile(r"[\s#*\[\]>=~`+.-]*+(?:Traceback \(most recent call last\):)?\s*")
_BLANK_LINE = re.compile(r"\n\s*\n")
_HEADING = re.compile(r"[ \t>]*(?:#+|\*\*)([^\n]*)")
_WORD = re.compile(r"\w+")
_ERROR = re.compile(r"^[ \t>]*(?:[\w.]*(?:Error|Exception|Warning|Failure|Panic)\b|panic:|thread ').*", re.MULTILINE)
"""Pattern for the line of a traceback with the name of the error and its text."""
_POSITION = r":(?:line[ ])?\d+(?::\d+)?"
_FRAME = re.compile(
    rf"""
    ^[ \t>|]*+(?:(?:
      File[ ](?:"(?P<python>[^"\n]{{1,400}})",[ ]line[ ]\d+|(?P<ipython>[^\s"]{{1,400}}?):\d+)
        (?:,[ ]in[ ](?P<def>[\w.<>]+))?
      |at[ ]++(?:
        (?:[\w.@$-]*+/){{0,3}}(?P<java>[\w$.]+)\.(?P<method>[\w$<>]+)\((?P<source>\w+\.(?:java|kt|scala|groovy|clj)):\d+\)
        |(?P<sharp>[\w.`<>+\[\],]+)\([^()\n]*\)[ ]in[ ](?P<cs>[^\n]{{1,400}}?){_POSITION}
        |(?:async[ ]++|new[ ]++)?
          (?:(?P<function>[\w$.<>#\[\]][\w$.<>#\[\] ]{{0,199}}?)[ ]\()?(?P<at>[^\s()]{{1,400}}?){_POSITION}\)?
      ))[^\n]*
      |(?:from[ ]|(?P<caller>[\w$.*<>]{{0,100}})@)?(?P<plain>[^\s:()"']{{0,400}}\.\w{{1,5}}){_POSITION}
        (?::[ ]?in[ ][`']?(?P<in>[\w.#<>]+)'?|[ ]\+0x[0-9a-f]+)?
    )""",
    re.VERBOSE | re.MULTILINE,
)
"""Pattern for a line of a traceback: of Python, Java, C#, JavaScript or Rust; or for the place at the beginning of a
line of Go, pytest, Ruby, Firefox or a compiler, which may be followed by a message.
"""
_NAMES = ("def", "method", "sharp", "function", "caller", "in")
"""Groups of `_FRAME` that have the name of a function."""
_CALLED = re.compile(
    r"^[ \t>]*+(?:\d+:[ ]++|created by )?((?:<[^\n]{0,200}>::)?[\w/.*:<>{}()\[\]$-]{0,300}[\w>)}\]])(?:\([^()\n]*\))?"
    r"(?: in goroutine \d+)?[ \t]*+(?=\n[ \t>]++(?:at )?[^\s:]++:\d)",
    re.MULTILINE,
)
"""Pattern for a function of Go or Rust in a traceback: its file is in the next line."""
_GENERATED = re.compile(r"<(\w+)>[a-z]__[\w.]*+|lambda\$(\w+)\$\w+|\.func\d+(?:\.\d+)*(?:\([^()]*\))?$")
"""Pattern for a name that a compiler made; one of the groups is the name of the function around it, if it has one."""
_ARGUMENTS = re.compile(r"<[^<>]*>|\([^()]*\)|\[[^\[\]]*\]|\{\{.*|`\d+")
_INSTALLED = re.compile(r"^.*(?:site-packages|dist-packages|node_modules|go/pkg/mod|registry/src/[^/]+|/rustc/[^/]+)/")
_TOKEN = re.compile(r"[\w.+/\\@:~-]{2,400}")
_TICKED = re.compile(r"`([^`\n]{2,80})`")
_SOURCE = re.compile(
    r"\.(?:py[ix]?|m?[jt]sx?|cjs|go|rs|java|kt|swift|scala|rb|php|cs|cc?|hh?|[ch]pp|hs|lua|exs?|zig|sh|vue|mm?|html?|css"
    r"|scss|cfg|ini|toml|ya?ml|json|rst|md|txt|j2|po|sql|ipynb|xml)$"
)
"""Pattern for the extension of a file, at the end of a word that may be a path."""
_MODULE = re.compile(r"[a-z_]\w*(?:\.\w+)+")
_EXTENSION = re.compile(r"(?:/__init__|/index|/mod)?\.\w+$")


@dataclass(frozen=True, slots=True)
class LongText:
    """Parts of a long query."""

    title: str
    prose: str
    ticked: tuple[str, ...] = ()
    functions: dict[str, float] = field(default_factory=dict[str, float])
    mentions: tuple[tuple[str, float], ...] = ()
    cut: int = 0


def is_long(text: str, stop_words: Collection[str]) -> bool:
    """Return True if a query has many words, other than stop words and paths, or several lines and many characters."""
    text = text[:MAX_QUERY_CHARS].strip()
    if "\n" in text and len(text) > _MIN_CHARS and not _is_paragraph(text):
        return True
    words = {word for word in text.lower().split() if not _SOURCE.search(word)}
    return len(words.difference(stop_words)) > _MIN_WORDS


def read_long_text(text: str, stop_words: Collection[str] = ()) -> LongText:
    """Read the parts of a long query; a heading of stop words and words of templates alone is not its title."""
    cut = max(len(text) - MAX_QUERY_CHARS, 0)
    text = _COMMENT.sub(" ", text[:MAX_QUERY_CHARS].replace("\r\n", "\n"))
    title, body = _title(text, stop_words)
    mentions: dict[str, float] = {}
    functions: dict[str, float] = {}

    def mention(path: str, weight: float) -> None:
        path = _INSTALLED.sub("", path.partition("?")[0].replace("\\", "/")).removeprefix("file://").strip("/.")
        if path:
            mentions[path] = max(mentions.get(path, 0.0), weight)

    for address in _BLOB.finditer(text):
        mention(address[1], 1.0)
    body = _URL.sub(" ", _ORIGIN.sub("", body))
    for path, function, weight in _frames(body):
        mention(path, weight)
        if function:
            functions[function] = max(functions.get(function, 0.0), 0.6 * weight)
    prose = _FRAME.sub(" ", _CALLED.sub(" ", body))
    for part, factor in ((title, 1.3), (prose, 1.0)):
        for path, weight in _paths(part):
            mention(path, factor * weight)
    kept = sorted(mentions.items(), key=lambda one: -one[1])[:_MAX_MENTIONS]
    return LongText(title, prose, tuple(_TICKED.findall(f"{title}\n{prose}")), functions, tuple(kept), cut)


def _title(text: str, stop_words: Collection[str]) -> tuple[str, str]:
    """Return the title of a text and the rest of it."""
    if _is_paragraph(text):
        return text, ""
    lines = text.split("\n")
    worded = [at for at, line in enumerate(lines) if not _NO_TITLE.fullmatch(line)] or [0]
    first = next((at for at in worded if not _is_template(lines[at], stop_words)), worded[0])
    frame = _FRAME.match(lines[first])
    begins = frame is not None and not frame["plain"]  # the words after a plain place are a message
    if begins or (first and "Traceback" in text[: sum(len(line) + 1 for line in lines[:first])]):
        errors = _ERROR.findall(text)
        return (errors[-1].strip() if errors else ""), text
    title = lines[first]
    rest = [line for at, line in enumerate(lines) if at != first]
    return title[:_MAX_TITLE_CHARS], "\n".join((title[_MAX_TITLE_CHARS:], *rest))


def _is_paragraph(text: str) -> bool:
    """Return True if a text is a wrapped sentence, a list or some code, which has no title; it is read as one line."""
    return len(text) <= _MAX_TITLE_CHARS and not (_BLANK_LINE.search(text) or _FRAME.search(text))


def _is_template(line: str, stop_words: Collection[str]) -> bool:
    """Return True if a line is a heading of a template, such as `### Steps to reproduce`."""
    heading = _HEADING.match(line)
    words = _WORD.findall(heading[1].lower()) if heading else []
    return bool(words) and TEMPLATE_WORDS.union(stop_words).issuperset(words)


def _frames(text: str) -> Iterator[tuple[str, str, float]]:
    """Yield the path, the function and the weight of each line of a traceback; the innermost function counts most."""
    found = list(_FRAME.finditer(text))
    for place, frame in enumerate(found, 1):
        # Python's last frame is the innermost; in other languages it is the first.
        python = frame["python"] or frame["ipython"]
        weight = 0.5 + 0.5 * (place if python else len(found) + 1 - place) / len(found)
        name = _last_name(next(filter(None, map(frame.group, _NAMES)), ""))
        if frame["java"]:
            package = frame["java"].rpartition(".")[0].replace(".", "/")
            yield f"{package}/{frame['source']}", name, weight
        else:
            yield python or frame["cs"] or frame["at"] or frame["plain"], name, weight
    for called in _CALLED.finditer(text):
        yield "", _last_name(called[1]), 0.75


def _last_name(qualified: str) -> str:
    """Return the last name of a qualified name such as `a.b` or `a::b`; empty if it is not a name, as `<module>`."""
    named = _GENERATED.sub(lambda found: found[1] or found[2] or "", qualified)
    name = re.split(r"[.:/#]+", _ARGUMENTS.sub("", named).rstrip(": "))[-1]
    return name if re.fullmatch(r"[^\W\d]\w*", name) else ""


def _paths(text: str) -> Iterator[tuple[str, float]]:
    """Yield the paths and modules that a text names, with their weights."""
    for token in _TOKEN.findall(text):
        path = re.sub(_POSITION + r".*", "", token).strip(".:@~-")
        if _SOURCE.search(path) and path[-1] != "/":
            yield path, 1.0
        elif "/" in path.strip("/") and "@" not in path:
            yield path, 0.6
        elif _MODULE.fullmatch(path):
            yield path.replace(".", "/"), 0.8


def mention_score(path: str, mentions: tuple[tuple[str, float], ...]) -> float:
    """Return how much a long query names a path: at most 1.

    A mention names a file if its last names are the last names of the path: `django/db/models.py`, or
    `/home/me/django/db/models.py` for `db/models.py`; also if it is a module of which the file is a part, such as
    `django.db.models.Model`.
    """
    parts = _EXTENSION.sub("", path.replace("\\", "/")).split("/")
    return min(max((_likeness(parts, named) * weight for named, weight in mentions), default=0.0), 1.0)


def mentioned_names(path: str) -> list[str]:
    """Return the names, one of which is in each path that a mention names: of the file, or of a module."""
    if _SOURCE.search(path):
        return [_EXTENSION.sub("", path).rpartition("/")[2]]
    return path.split("/")[-3:]


def _likeness(parts: list[str], named: str) -> float:
    bare = _EXTENSION.sub("", named) if _SOURCE.search(named) else named
    names = bare.split("/")
    same = 0
    while same < min(len(parts), len(names)) and parts[-1 - same] == names[-1 - same]:
        same += 1
    if same in (len(names), len(parts)):
        return 1.0 if same > 1 else 0.7 * (bare != named)
    if bare != named:
        return 0.8 * (same > 1)
    for behind, likeness in ((1, 0.9), (2, 0.7)):  # a module and one or two names in it
        if len(names) - behind > 1 and parts[-(len(names) - behind) :] == names[:-behind]:
            return likeness
    return 0.0
