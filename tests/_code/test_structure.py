"""Patterns of ast-grep: required texts, edits as those of `ast-grep`, and the table of languages."""

import json
import random
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("ast_grep_py")

from ast_grep_py import SgRoot

from ripwrap._code.structure.client import LANGUAGES, find_language
from ripwrap._code.structure.patterns import BadPatternError, read_pattern
from ripwrap._code.structure.worker import search
from support.effort import times
from support.ordinary_patterns import ORDINARY

pytestmark = [pytest.mark.extra, pytest.mark.slow]

SAMPLES = Path(__file__).parents[1] / "data" / "sections"
STDLIB = Path(sysconfig.get_path("stdlib"))
CASES = times(90, 3000)


class Source(NamedTuple):
    path: Path
    language: str


class Case(NamedTuple):
    """Pattern that was made from a node of a source, and a fix with its metavariables."""

    source: Source
    pattern: str
    fix: str


@cache
def program() -> str:
    """Return the path of `ast-grep`, which the extra does not need."""
    found = shutil.which("ast-grep", path=sysconfig.get_path("scripts"))
    if found is None:
        pytest.skip("could not import ast-grep-cli")
    return found


@cache
def sources() -> list[Source]:
    by_extension = {f".{extension}": one.name for one in LANGUAGES.values() for extension in one.extensions}
    samples = [
        Source(path, by_extension[path.suffix]) for path in sorted(SAMPLES.iterdir()) if path.suffix in by_extension
    ]
    return [*samples, *(Source(path, "python") for path in sorted(STDLIB.glob("[a-d]*.py")))]


def below(node: Any) -> Iterator[Any]:
    """Yield the named nodes below a node."""
    for child in node.children():
        if child.is_named():
            yield child
        yield from below(child)


def cases(number: int) -> Iterator[Case]:
    """Yield patterns: nodes of sources, in which some parts are metavariables."""
    draw = random.Random(number)
    while number:
        source = draw.choice(sources())
        root = SgRoot(source.path.read_text("utf-8"), source.language).root()
        if not (nodes := [node for node in below(root) if 3 < len(node.text()) < 300]):
            continue
        number -= 1
        node = draw.choice(nodes)
        text, start, done = node.text(), node.range().start.index, 10**9
        parts = [(one.range().start.index - start, one.range().end.index - start) for one in below(node)]
        names: list[str] = []
        for first, last in sorted(draw.sample(parts, min(len(parts), draw.randint(0, 3))), reverse=True):
            if last <= done and not re.match(r"[\w$]", text[last : last + 1]) and text[first - 1 : first] != "$":
                names.append(draw.choice(["$A", "$B", "$C", "$$$D", "$$$E"]))
                text, done = text[:first] + names[-1] + text[last:], first
        yield Case(source, text, f"new(\n    {', '.join(names)}\n)")


def found_in(case: Case, fix: str | None) -> "dict[str, Any] | None":
    """Return what is found in the source of a case; `None` if its text is no pattern."""
    try:
        return search(case.pattern, case.source.language, fix, case.source.path.read_bytes())
    except BadPatternError:
        return None


def test_each_match_has_the_texts_that_its_pattern_requires() -> None:
    checked = 0
    for case in cases(CASES):
        found = found_in(case, None)
        content = case.source.path.read_bytes()
        for start, end, _, _ in found["hits"] if found else ():
            literals = read_pattern(case.pattern, find_language(case.source.language)).literals
            missing = [text for text in literals if text.encode() not in content[start:end]]
            assert not missing, case
            checked += bool(literals)
    assert checked > CASES / 2


def test_matches_and_edits_are_those_of_ast_grep() -> None:
    checked = edited = whole = exact = refused = 0
    for case in cases(CASES // 3):
        found = found_in(case, case.fix)
        argv = [
            "run",
            "--json=stream",
            f"--pattern={case.pattern}",
            f"--rewrite={case.fix}",
            "-l",
            case.source.language,
        ]
        done = subprocess.run([program(), *argv, str(case.source.path)], capture_output=True, timeout=20, check=False)
        told = [json.loads(line) for line in done.stdout.decode().splitlines()]
        if found is None:  # it has a part that does not parse, which ast-grep tells of only if it is the whole
            continue
        checked += 1
        assert len(found["hits"]) == len(told), case
        for hit, one in zip(found["hits"], told, strict=True):
            start, end, spans, edit = hit
            assert {"start": start, "end": end} == one["range"]["byteOffset"], case
            single = one.get("metaVariables", {}).get("single", {})
            assert {name: spans[name] for name in single} == {
                name: tuple(value["range"]["byteOffset"].values()) for name, value in single.items()
            }, case
            if edit is None or isinstance(edit, str):  # inside of a replaced match, or code would be lost
                refused += edit is not None
                continue
            # The program replaces the whole match, also what the pattern does not have.
            assert start <= edit[0] <= edit[1] <= one["replacementOffsets"]["end"] == end, case
            whole += edit[:2] == (start, end)
            assert stripped_lines(edit[2]) == stripped_lines(one["replacement"]), case
            exact += edit[2] == one["replacement"]
            edited += 1
    assert checked > CASES / 6
    assert edited > checked
    assert refused < edited / 50
    assert whole > edited * 0.8  # `$$$E.$A` matches `a.b` with an empty list
    assert exact > edited * 0.9  # not: lines in strings, and after tabs


def told_by_ast_grep(pattern: str, language: str, path: Path) -> list[dict[str, Any]]:
    """Return the matches that the program finds in a file: spans of the match and of its metavariables, in bytes."""
    argv = [program(), "run", "--json=stream", f"--pattern={pattern}", "-l", language, str(path)]
    done = subprocess.run(argv, capture_output=True, timeout=20, check=False)
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def span_told(found: dict[str, Any]) -> tuple[int, int]:
    start, end = found["range"]["byteOffset"].values()
    return start, end


def variables_told(found: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Return the span of each metavariable of a match that captured something."""
    known = found.get("metaVariables", {})
    spans = {name: span_told(one) for name, one in known.get("single", {}).items()}
    for name, nodes in known.get("multi", {}).items():
        spans |= {name: (span_told(nodes[0])[0], span_told(nodes[-1])[1])} if nodes else {}
    return spans


def stripped_lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n")]


@pytest.mark.stress
@pytest.mark.parametrize("language", sorted(ORDINARY))
def test_ordinary_patterns_find_what_ast_grep_finds(language: str, tmp_path: Path) -> None:
    """Patterns of which a part does not parse by itself were refused, 28 of 94 in 23 languages."""
    assert len(ORDINARY) == 23 and sum(len(patterns) for _, patterns in ORDINARY.values()) >= 88
    source, patterns = ORDINARY[language]
    path = tmp_path / f"a.{LANGUAGES[language].extensions[0]}"
    path.write_bytes(source.encode())
    for pattern in patterns:
        told = told_by_ast_grep(pattern, language, path)
        hits = search(pattern, language, None, path.read_bytes())["hits"]
        assert told, pattern
        assert [(start, end) for start, end, _, _ in hits] == [span_told(one) for one in told], pattern
        spans = [{name: span for name, span in spans.items() if span != (0, 0)} for _, _, spans, _ in hits]
        assert spans == [variables_told(one) for one in told], pattern
        literals = read_pattern(pattern, LANGUAGES[language]).literals
        texts = [path.read_bytes()[start:end].decode() for start, end, _, _ in hits]
        assert all(literal in text for literal in literals for text in texts), pattern


@pytest.mark.parametrize(
    ("language", "pattern", "message"),
    [
        ("csharp", "$A + $B", "it is not valid csharp, so that $B captures nothing"),
        ("csharp", "$A = $B", "it is not valid csharp, so that $B captures nothing"),
        ("python", "f('a $B')", "$B is a part of a name or a string, and captures nothing"),
        ("python", "f(get$B, $A)", "$B is a part of a name or a string, and captures nothing"),
        ("html", "<a>$A b</a>", "$A is a part of a name or a string, and captures nothing"),
        ("php", "f($Name)", "$Name is a part of a name or a string, and captures nothing"),
        ("go", "f($A", "it is not valid go; close each bracket of the pattern"),
        ("java", "f($A))", "it is not valid java; close each bracket of the pattern"),
        ("php", "<?php f($A);", "it has a tag of PHP; leave out the tags"),
    ],
)
def test_pattern_whose_metavariable_captures_nothing_is_refused(language: str, pattern: str, message: str) -> None:
    """Only these patterns are refused; ast-grep drops the rest of the pattern in silence."""
    with pytest.raises(BadPatternError, match=re.escape(message)):
        read_pattern(pattern, LANGUAGES[language])


CALLS = {
    "c": "void g() { free(p); x = f(p); return a; k = a * b; T * q; }",
    "cpp": "void g() { free(p); x = f(p); std::move(p); return a; k = a * b; int &r = a; }",
    "csharp": "class C { int G() { Free(p); x = a.F(p); return a; throw e; } }",
    "go": "package p\nfunc g() int { free(p); a.f(p); x := f(p); return a }",
    "solidity": "contract C { function g() public { free(p); x = a + b; return a; } }",
}


@pytest.mark.parametrize(
    ("language", "pattern", "other"),
    [
        ("c", "free($P)", "free($P);"),
        ("c", "free($P);", None),
        ("c", "x = f($P)", None),
        ("c", "$A * $B", None),
        ("c", "return $A", None),
        ("cpp", "std::move($P)", "std::move($P);"),
        ("cpp", "free($P)", None),
        ("cpp", "&$A", None),
        ("csharp", "return $A", "return $A;"),
        ("csharp", "throw $E", "throw $E;"),
        ("csharp", "a.F($P)", None),
        ("go", "a.f($P)", "$F($P)"),
        ("go", "free($P)", None),
        ("go", "x := f($P)", None),
        ("solidity", "free($P)", "$F($P)"),
        ("solidity", "function g() public { $$$ }", None),
    ],
)
def test_pattern_that_never_matches_names_one_that_does(language: str, pattern: str, other: str | None) -> None:
    """Outside of a function, these languages read a call as a declaration, a type or a conversion."""
    code = CALLS[language]
    found = [node.text() for node in SgRoot(code, language).root().find_all(pattern=pattern)]
    if other is None:
        assert found and search(pattern, language, None, code.encode())["hits"]
        return
    assert not found or language == "csharp"  # there it would match without its metavariable
    with pytest.raises(BadPatternError, match=re.escape(f"; use {other!r}") + "$"):
        read_pattern(pattern, LANGUAGES[language])
    assert search(other, language, None, code.encode())["hits"]


def test_text_with_a_dollar_is_no_metavariable_where_names_may_have_it() -> None:
    """In JavaScript, `$` belongs to names and strings, and is compared as any other sign."""
    (hit,) = search('on$X("a $B", $A)', "javascript", None, b'on$X("a $B", 1); on$X("a $C", 1)')["hits"]
    assert hit[2] == {"A": (13, 14)}


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("requests.get($URL, verify=False)", ("requests", "verify", "get", "False")),
        ("f('a b', $A, \"c\")", ("a b", '"', "'", "c", "f")),
        ("f($$$A)", ("f",)),
        ("lambda $A: $_", ("lambda",)),
        ("raise $A from None", ("raise", "None", "from")),
        ("return foo not in $A", ("foo", "return", "not", "in")),
        ("x = '''one\n  two'''", ("'''", "one", "two", "x")),
    ],
)
def test_required_texts_are_names_and_strings(pattern: str, literals: tuple[str, ...]) -> None:
    assert read_pattern(pattern, LANGUAGES["python"]).literals == literals


def test_table_of_languages_is_that_of_ast_grep(tmp_path: Path) -> None:
    """The error for a pattern that is only `$$$A` shows the character that stands for `$`."""
    for one in LANGUAGES.values():
        with pytest.raises(RuntimeError, match="Standalone multi meta variable") as error:
            SgRoot("", one.name).root().find(pattern="$$$A")
        assert f"`{one.expando * 3}A`" in str(error.value), one
    for extension in {extension for one in LANGUAGES.values() for extension in one.extensions}:
        (tmp_path / f"a.{extension}").write_text("a\n")
    for one in LANGUAGES.values():
        done = subprocess.run(
            [program(), "run", "-p", "$A", "-l", one.name, "--json=stream", str(tmp_path)],
            capture_output=True,
            timeout=20,
            check=False,
        )
        read = {Path(json.loads(line)["file"]).suffix[1:] for line in done.stdout.splitlines()}
        assert read == (set() if one.name == "markdown" else set(one.extensions))  # `a` is no name in Markdown


def test_names_of_languages_are_found_and_similar_ones_named() -> None:
    assert find_language("TS") == find_language("typescript") == LANGUAGES["typescript"]
    with pytest.raises(ValueError, match="unknown language 'pyton'; did you mean python"):
        find_language("pyton")
    with pytest.raises(ValueError, match="known languages are bash, c,"):
        find_language("")
