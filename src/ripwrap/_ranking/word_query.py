"""Parse a query into words and symbols, and prepare texts and paths for full-text search; no I/O."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from string import ascii_letters, digits

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
        name = _last_part(next(filter(None, map(frame.group, _NAMES)), ""))
        if frame["java"]:
            package = frame["java"].rpartition(".")[0].replace(".", "/")
            yield f"{package}/{frame['source']}", name, weight
        else:
            yield python or frame["cs"] or frame["at"] or frame["plain"], name, weight
    for called in _CALLED.finditer(text):
        yield "", _last_part(called[1]), 0.75


def _last_part(qualified: str) -> str:
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


MAX_QUERY_WORDS = 32
"""Maximum number of words of a query that are searched; other words are left out."""

MAX_WORD_CHARS = 200
"""Maximum number of characters of a word or name that is searched; longer words are left out."""

_LONG_QUERY_WORDS = 16
"""Number of words of a long query that are searched without an index; with more, common words find more false files."""
_MAX_TITLE_WORDS = 16
_SPARE = 4
"""Number of words of a long query, as a multiple of `MAX_QUERY_WORDS`, of which an index keeps those that tell most."""
_MAX_SHOWN_CHARS = 100
"""Maximum number of characters of a query that an error message shows."""
_MIN_STEM_CHARS = 3
"""Minimum number of characters that remain of a word when an ending, such as `ing`, is removed."""

_CAMEL_CASE = re.compile(r"([A-Z])(?:(?<=[a-z0-9].)|(?<=[A-Z].)(?=[a-z]{2}))")
_KINDS = bytes.maketrans(f"{ascii_letters}{digits}".encode(), b"a" * 26 + b"A" * 26 + b"0" * 10)
"""Table for `bytes.translate()`: `A` for an uppercase letter, `a` for a lowercase letter, `0` for a digit."""
_WORD = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:(?:\.|::|->|#)[^\W\d]\w*)*(?P<call>\(\))?")
_POSSESSIVE = re.compile(r"(?<=\w)['\u2019]s\b")
_SEPARATOR = re.compile(r"\.|::|->|#")
_UNSPACED = re.compile(  # scripts without spaces between words, and Hangul, which has spaces only between phrases
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30fa\u30fc-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff]+"
)
_COMPOUND = re.compile(r"[^\W_]_+[^\W_]|[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}")
_DEFINITION_QUESTION = re.compile(
    r"(?:where\s+(?:is|are)\s+(?:the\s+)?(?:class\s+|function\s+|method\s+|type\s+)?(?P<defined>\S+?)\s+(?:defined|declared)\s*\??"
    r"|(?:the\s+)?(?:definition|declaration)\s+of\s+(?:the\s+)?(?P<of>\S+?)\s*\??"
    r"|(?:class|def|function|func|fn|struct|interface|trait|enum|type)\s+(?P<kind>\S+?))",
    re.IGNORECASE,
)

_LANGUAGES = {"c++": "cpp", "c#": "csharp", "f#": "fsharp", "j#": "jsharp", "q#": "qsharp"}
"""Names of languages that end in a sign, and their usual spelling as a word."""
_SIGNED = tuple(form for name in _LANGUAGES for form in (name, name.upper()))
_MAY_BE_SIGNED = re.compile(r"[CFJQcfjq][#+]")
_LANGUAGE = re.compile(r"(?<![^\W_])(?:c\+\+(?!\+)|[cfjq]#(?![#\w]))", re.IGNORECASE)

_STOP_WORDS = """
a about all also an and any are as at be been being but by can could did do does doing done each for from had has have
having how i if in into is it its just me my no nor not of off on onto or our out over own shall she should so some
such than that the their them then there these they this those through to too under until up upon us very via was we
were what when where whether which while who whom whose why will with within without would you your
"""
_ENDING_NAMES = """
ization izations isation isations ication ications ation ations ator ators ating ated ates ate izing izes ized izer
izers ize ising ises ised iser ise ment ments ing ings ion ions er ers or ors ed es s ies ie y e ly able ible ness ful
al ive ity ities ance ences ence ency
"""

STOP_WORDS = frozenset(_STOP_WORDS.split())
_ENDINGS = sorted(_ENDING_NAMES.split(), key=lambda ending: (-len(ending), ending))


@dataclass(frozen=True, slots=True)
class LongQuery:
    """Weights of the words, names and paths of a long query, such as the pasted text of an issue."""

    title: tuple[str, ...]
    weights: Mapping[str, float]
    symbols: Mapping[str, float]
    mentions: tuple[tuple[str, float], ...]
    spare: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WordQuery:
    """Query, parsed into words and symbols (names of functions, classes and so on)."""

    text: str
    words: tuple[str, ...]
    symbols: tuple[str, ...]
    symbolic: bool
    left_out: int = 0
    cut: int = 0
    long: LongQuery | None = field(default=None, compare=False)

    @property
    def title(self) -> tuple[str, ...]:
        """Words of the title of a long query; all words of a short one."""
        return self.words if self.long is None else self.long.title

    def weighted(self, worths: Mapping[str, float]) -> dict[str, float]:
        """Multiply the weight of each word by its weight in a long query."""
        weights: Mapping[str, float] = {} if self.long is None else self.long.weights
        return {word: worth * weights.get(word, 1.0) for word, worth in worths.items()}

    @property
    def remark(self) -> str:
        """Warning that a part of the query is not searched; empty if all of it is searched.

        A long query is not meant to be searched as a whole, so the warning says only if it was cut.
        """
        if self.cut:
            return f"only the first {MAX_QUERY_CHARS} characters of the query are searched, {self.cut} are left out"
        if self.long is not None or not self.left_out:
            return ""
        several = f"{self.left_out} words and names of the query are"
        return (
            f"{'1 word or name of the query is' if self.left_out == 1 else several} not searched: the limits are "
            f"{MAX_QUERY_WORDS} words (words of identifiers and long words are preferred) and {MAX_WORD_CHARS} "
            "characters for each word; use fewer or shorter words"
        )


def parse_query(text: str) -> WordQuery:
    """Parse the text of a query into words and symbols.

    Stop words, such as `the`, are searched only if the query has no other words. If a query has too many words, the
    most distinctive words are searched.
    """
    if not isinstance(text, str):
        raise TypeError(f"a query must be a str, got {type(text).__name__}")
    spelled = spell_languages(to_nfc(text))
    if is_long(spelled, STOP_WORDS):
        return _parse_long_query(text, read_long_text(spelled, STOP_WORDS))
    asked = _DEFINITION_QUESTION.fullmatch(spelled.strip())
    named = next(filter(None, asked.groups())) if asked else spelled.strip()
    alone = _IDENTIFIER.fullmatch(named)
    if alone and not asked and (_UNSPACED.search(named) or named in STOP_WORDS):
        alone = None  # the query may be a sentence, or a word that is not a symbol
    symbols = _identifiers(spelled) if alone is None else [_SEPARATOR.split(alone[0].removesuffix("()"))[-1]]
    words = _unique(_parts(named if alone else spelled))
    every = [word for word in words if word not in STOP_WORDS] or words
    telling = [word for word in every if len(word) <= MAX_WORD_CHARS]
    if not telling:
        raise ValueError(_without_words(text, any_word=bool(every)))
    names = _unique(symbols)
    short = tuple(name for name in names if len(name) <= MAX_WORD_CHARS)[:MAX_QUERY_WORDS]
    kept = _most_telling(telling, short)
    left_out = len(every) - len(kept) + len(names) - len(short)
    return WordQuery(text, kept, short, alone is not None, left_out)


def _without_words(text: str, *, any_word: bool) -> str:
    said = repr(text if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + "…")
    if any_word:
        return f"each word of the query {said} has more than {MAX_WORD_CHARS} characters; use shorter words"
    return f"there is no word in the query {said}; use words or names that may be in the files"


def _parts(text: str) -> Iterator[str]:
    """Yield the words of a text, with identifiers split into parts."""
    return (part for word in _words(_POSSESSIVE.sub("", text)) for part in identifier_parts(word))


def _identifiers(text: str) -> list[str]:
    """Return the last names of what looks like an identifier in a text, such as `getUser`, `run()` or `a::b`."""
    found = (one for one in _IDENTIFIER.finditer(text) if one["call"] or _COMPOUND.search(one[0]) or "::" in one[0])
    return [_SEPARATOR.split(one[0].removesuffix("()"))[-1] for one in found]


def _parse_long_query(text: str, long: LongText) -> WordQuery:
    """Parse a long query into words and symbols with weights, and keep those with the highest weights."""
    weights = _word_weights(long)
    if not weights:
        raise ValueError(_without_words(text, any_word=bool(_words(text))))
    symbols: dict[str, float] = dict(long.functions)
    for part, weight in ((long.title, 1.0), (long.prose, 0.6)):
        for name in _identifiers(part):
            symbols[name] = max(symbols.get(name, 0.0), weight)
    for name in long.ticked:
        if _IDENTIFIER.fullmatch(name) and len(name) > _MIN_STEM_CHARS - 1 and not name.islower():
            symbols[name] = max(symbols.get(name, 0.0), 0.8)
    every = [name for name in symbols if len(name) <= MAX_WORD_CHARS]
    names = tuple(sorted(every, key=lambda name: -symbols[name])[:MAX_QUERY_WORDS])
    inside = {part for name in names for part in identifier_parts(name)}

    def telling(word: str) -> float:
        length = 1.0 if is_unspaced(word) else min(1.0, 0.4 + len(word) / 10)
        return weights[word] * (1.25 if word in inside else 1.0) * length

    order = sorted(weights, key=lambda word: -telling(word))
    place = {word: number for number, word in enumerate(weights)}
    words = tuple(sorted(order[:_LONG_QUERY_WORDS], key=place.__getitem__))
    title = tuple(word for word in _unique(_parts(long.title)) if word in weights)[:_MAX_TITLE_WORDS]
    parts = LongQuery(
        title or words[:_MAX_TITLE_WORDS], weights, symbols, long.mentions, tuple(order[: _SPARE * MAX_QUERY_WORDS])
    )
    left_out = len(weights) - len(words) + len(symbols) - len(names)
    return WordQuery(text, words, names, False, left_out, long.cut, parts)


def _word_weights(long: LongText) -> dict[str, float]:
    """Return the weight of each word of a long query."""
    in_title = set(_parts(long.title))
    ticked = {part for name in long.ticked for part in _parts(name)}
    counts = Counter(_parts(f"{long.title}\n{long.prose}"))
    for function in long.functions:
        counts.update(identifier_parts(function))
    fillers = STOP_WORDS | (TEMPLATE_WORDS - in_title)
    short = [word for word in counts if len(word) <= MAX_WORD_CHARS]
    weights: dict[str, float] = {}
    for word in [word for word in short if word not in fillers] or short:
        weight = 1 + math.log(min(counts[word], 8)) + 1.5 * (word in in_title) + 0.5 * (word in ticked)
        short_word = len(word) < _MIN_STEM_CHARS and word not in in_title and not is_unspaced(word)
        tells_little = short_word or word.isdecimal()
        weights[word] = weight * (0.3 if tells_little else 1)
    return weights


def _most_telling(words: list[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return at most `MAX_QUERY_WORDS` of the words: parts of `names` first, numbers last, else the longest."""
    if len(words) <= MAX_QUERY_WORDS:
        return tuple(words)
    parts = {part for name in names for part in identifier_parts(name)}
    best = sorted(words, key=lambda word: (word not in parts, word.isdecimal(), -len(word)))[:MAX_QUERY_WORDS]
    return tuple(sorted(best, key={word: place for place, word in enumerate(words)}.__getitem__))


def to_nfc(text: str) -> str:
    """Return a text in Unicode's normal form NFC, in which a letter and its accent are one character."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def spell_languages(text: str) -> str:
    """Spell the names of languages that end in a sign as words: `C++` becomes `cpp `, and `C#` becomes `csharp `."""
    if not _MAY_BE_SIGNED.search(text):  # a tenth of the time of `_LANGUAGE`
        return text
    return _LANGUAGE.sub(lambda found: f"{_LANGUAGES[found[0].lower()]} ", text)


def signed_languages(text: str) -> Iterator[tuple[int, str]]:
    """Return the place and the usual spelling of each name of a language that ends in a sign: `cpp` for `C++`."""
    return ((found.start(), _LANGUAGES[found[0].lower()]) for found in _LANGUAGE.finditer(text))


def signed_forms(word: str) -> list[str]:
    """Return the name of a language as `spell_languages()` finds it, such as `C++`, for a word such as `cpp`."""
    return [form for form in _SIGNED if _LANGUAGES[form.lower()] == word]


def unicode_forms(word: str) -> tuple[str, ...]:
    """Return `word`, which must be in NFC, and its NFD form, if that is different."""
    return (word,) if word.isascii() else tuple(_unique((word, unicodedata.normalize("NFD", word))))


def is_unspaced(word: str) -> bool:
    """Return True if the first character of a word is of a script without spaces, such as Chinese, or is Hangul."""
    return not word.isascii() and _UNSPACED.match(word) is not None


def _words(text: str) -> list[str]:
    """Return the words of a text: runs of letters, digits, `_` and marks, such as vowel signs of Hindi."""
    if text.isascii():
        return _WORD.findall(text)
    parts = "".join(one if _WORD.match(one) or unicodedata.category(one)[0] == "M" else " " for one in text).split()
    return [part for part in parts if _WORD.search(part)]


def fts_text(text: str) -> str:
    """Prepare a text for full-text search: split identifiers in camel case, such as `getResponse`, into words.

    Text in a script without spaces between words, such as Chinese, is split into overlapping pairs of characters. The
    last character of such a text is also a word by itself, so that each character begins a word.
    """
    # A tokenizer without word segmentation takes a sentence of Chinese for a single word. Overlapping pairs (bigrams)
    # find every word of two characters or more as a phrase, without a dictionary.
    text = split_camel_case(spell_languages(text))
    if text.isascii():
        return text
    return _UNSPACED.sub(lambda run: f" {' '.join(_pairs(run[0]))} {run[0][-1]} ", unicodedata.normalize("NFC", text))


def _pairs(run: str) -> Iterator[str]:
    return (run[at : at + 2] for at in range(len(run) - 1))


def split_camel_case(text: str) -> str:
    """Put spaces between the parts of identifiers in camel case: `getHTTPResponse` becomes `get HTTP Response`."""
    if not _may_have_camel_case(text):
        return text
    parts = _CAMEL_CASE.split(text)  # `sub()` would run Python code for each match before Python 3.12
    parts[1::2] = [f" {letter}" for letter in parts[1::2]]
    return "".join(parts)


def _may_have_camel_case(text: str) -> bool:
    """Return False if a text has no identifiers in camel case; this is faster than a search for `_CAMEL_CASE`."""
    if not text.isascii():
        return True
    kinds = text.encode().translate(_KINDS)
    return b"aA" in kinds or b"0A" in kinds or b"AAaa" in kinds


def identifier_parts(identifier: str) -> list[str]:
    """Return the parts of an identifier in lower case: http, server and v2 for `HTTPServer_v2`.

    Single letters are left out if there are longer parts.
    """
    parts = split_camel_case(identifier).replace("_", " ").lower().split()
    if not identifier.isascii():
        parts = [piece for part in parts for piece in _script_runs(part)]
    return [part for part in parts if len(part) > 1 or is_unspaced(part)] or parts


def joined_parts(identifier: str) -> str:
    """Return the parts of an identifier between underscores, `_cookie_jar_` for `CookieJar`; a single part alone."""
    parts = identifier_parts(identifier)
    return f"_{'_'.join(parts)}_" if len(parts) > 1 else "".join(parts)


def _script_runs(part: str) -> Iterator[str]:
    """Yield the parts of a word, split where a script without spaces between words, such as Chinese, begins or ends.

    A part in such a script is split into overlapping pairs of characters.
    """
    at = 0
    for run in _UNSPACED.finditer(part):
        yield from filter(None, (part[at : run.start()],))
        yield from _pairs(run[0]) if len(run[0]) > 1 else run[0]
        at = run.end()
    yield from filter(None, (part[at:],))


@lru_cache(maxsize=4096)
def rough_stem(word: str) -> str:
    """Return the beginning that all forms of a word have in common (its stem): `pars` for `parse` and `parsing`.

    The stem may be too short, so that other words also begin with it.
    """
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM_CHARS:
            stem = word[: -len(ending)]
            return stem[:-1] if len(stem) > _MIN_STEM_CHARS and stem[-1] == stem[-2] else stem
    return word


@lru_cache(maxsize=32768)
def stems_of(word: str) -> tuple[str, ...]:
    """Return the stems of the parts of a word or identifier of a text."""
    return tuple(rough_stem(part) for part in identifier_parts(word) if len(part) <= MAX_WORD_CHARS)


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
