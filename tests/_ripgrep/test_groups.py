"""Finding the groups of a pattern, and reading them out of rg's replacement."""

from contextlib import suppress

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ripwrap import sync
from ripwrap._ripgrep.groups import Groups, UnknownSyntaxError, groups_of
from ripwrap.errors import DecodeError, PatternError
from support.effort import times
from support.patterns import NOISE, Sample, samples


def split(pattern: str, *texts: str) -> tuple[bytes | None, ...]:
    groups = groups_of(pattern)
    return groups.split("".join(f"{text}{groups.separator}" for text in texts).encode())


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("abc", ()),
        (r"(a)(?P<x>b)(?<y>c)(?:d)(?i:e)(?i)", (None, "x", "y")),
        (r"\((a)\)[()][(\])](b)[[:alpha:](](c)", (None, None, None)),
        (r"[a[b(]c](x)[^]()](y)", (None, None)),
        (r"(?x) ( a # (comment) with )" + "\n" + r" (b) )", (None, None)),
        (r"((a)|(b))*(c){2,3}", (None, None, None, None)),
        (r"\p{Greek}\x{28}\u0028\x28(a)\b{start}(b)", (None, None)),
    ],
)
def test_groups_of_a_pattern_are_named_in_order(pattern: str, names: tuple[str | None, ...]) -> None:
    assert groups_of(pattern).names == names


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (r"(?<=(a))(?=b)(?!(c))(?>d)(e)\1\g{-1}\k<x>(?P=y)", (None, None, None)),
        (r"\Q(a)\E(b)(?'q'c)(?#(no)a++(d)", (None, "q", None)),
    ],
)
def test_groups_of_pcre2_patterns_are_found(pattern: str, names: tuple[str | None, ...]) -> None:
    assert groups_of(pattern, pcre2=True).names == names


@pytest.mark.parametrize("pattern", ["(a", "a)", "*a", "[a", r"(a)\1", "(?=a)", "a)|(b", "(?P<n", "\\", "(?#c)", "(?)"])
def test_patterns_with_invalid_syntax_are_refused(pattern: str) -> None:
    with pytest.raises(UnknownSyntaxError):
        groups_of(pattern)


@pytest.mark.parametrize("pattern", ["(*UCP)a", "(?|(a)|(b))", "(?(1)a)", "(?1)", "(?R)", "(?&n)"])
def test_pcre2_syntax_that_is_not_parsed_is_refused(pattern: str) -> None:
    with pytest.raises(UnknownSyntaxError):
        groups_of(pattern, pcre2=True)


@pytest.mark.parametrize(
    ("pattern", "texts", "found"),
    [
        ("(a)|(b)", ("", "b"), (None, b"b")),  # neither can be empty
        ("x(a*)y", ("",), (b"",)),  # every match goes through it
        ("(x*)?", ("",), (b"",)),  # a greedy operator tries it first
        ("(x*)??", ("",), (None,)),
        ("(x*){0,0}", ("",), (None,)),
        ("b|(a*)", ("",), (None,)),  # cannot be told
        (r"(=(\w*))?", ("=", ""), (b"=", b"")),  # the group around it tells
        (r"(=(\w*))?", ("", ""), (None, None)),
        (r"k(?:=(\w*))?", ("=", ""), (b"",)),  # a new group around it tells
        (r"k(?:=(\w*))?", ("", ""), (None,)),
        (r"x=(\d*)|(y)=(\w*)", ("", "", "y=", "y", ""), (None, b"y", b"")),
        (r"(?i)x=(\d*)|z", ("x=", ""), (b"",)),
    ],
)
def test_unset_groups_differ_from_empty_ones(
    pattern: str, texts: tuple[str, ...], found: tuple[bytes | None, ...]
) -> None:
    assert split(pattern, *texts) == found


def test_a_group_is_put_around_an_optional_part() -> None:
    assert groups_of(r"k(?:=(\w*))?").pattern == r"k((?:=(\w*)))?"
    assert groups_of(r"(?i)x=(\d*)|z").pattern == r"(?i)(x=(\d*))|z"
    assert groups_of(r"a(?i)x=(\d*)|z").pattern == r"a(?i)x=(\d*)|z"  # the flag is for z, too


def test_joined_patterns_have_no_groups() -> None:
    assert groups_of(r"(a)(?P<x>b|(?i)c)\(").joined == r"(?:a)(?:b|(?i)c)\("
    assert groups_of(r"(?x) a").joined is groups_of(r"\Aa").joined is groups_of("a", pcre2=True).joined is None
    assert groups_of("(?-m:^)a").joined is None  # `^` is then the start of the file


@pytest.mark.parametrize(
    ("pattern", "reduced"),
    [
        (r"(?i)\w{0,50}?(token)", "(?i)(?:token)"),
        (r"a?(b)*(?:c|d?e)f?", "(?:c|e)f?"),
        (r"x*(?i:[a-c]*(y)?(?:z))", "(?i:(?:z))"),
        (r"(?:a?b)+c", "(?:a?b)+c"),
        (r"(?:a?b)*a*c", "c"),
        (r"(a?|b)c?d", "(?:|b)c?d"),
        (r"\ba?b", r"\ba?b"),
        (r"a+?b", "a+?b"),
        (r"(a|\z)b|c\z*", "(?:a|(?:))b|c(?:)*"),
        (r"a?\z", "(?:)"),
        (r"a*", ""),
    ],
)
def test_reduced_patterns_lack_what_a_match_may_leave_out(pattern: str, reduced: str) -> None:
    assert groups_of(pattern).reduced == reduced


@pytest.mark.slow
@settings(max_examples=times(40, 5000))
@given(sample=samples(), before=st.sampled_from(["a?", "(x|b)*", "(?i)", "(?:c{0,2})", ""]), noise=NOISE)
def test_reduced_patterns_match_at_least_the_same_lines(
    sample: Sample, before: str, noise: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pattern, reduced = before + sample[0], None
    with suppress(UnknownSyntaxError):
        reduced = groups_of(pattern).reduced
    if reduced in (None, pattern):
        return
    file = tmp_path_factory.getbasetemp() / "lines"
    file.write_text(f"{sample[1]}\n{noise}{sample[1]}{noise}\n{noise}\n", "utf-8", newline="\n")
    try:
        found, more = (
            {match.line_number for match in sync.search(one, cwd=file.parent, paths="lines")}
            for one in (pattern, reduced or "")
        )
    except PatternError:
        event("refused by rg")
        return
    event(f"found: {bool(found)}")
    assert found <= more


@pytest.mark.parametrize(
    ("pattern", "multiline"),
    [(r"[\s\S]", True), (r"(?s:.)", True), (r"a\nb", True), (r"[\sS]", False), (r"\\n", False), (r"(?-s).", False)],
)
def test_patterns_that_name_line_terminators_are_recognised(pattern: str, multiline: bool) -> None:
    assert groups_of(pattern).multiline is multiline


@pytest.mark.parametrize(
    ("replacement", "message"),
    [
        (b"x\ny\n\n", "rg wrote 3 groups, expected 2 groups"),  # a separator in the text of a group
        (b"x\n", "rg wrote 1 group, expected 2 groups"),
        (b"x\ny", "rg wrote 1 group and text after the last separator (b'y'), expected 2 groups"),
        (b"x\ny\nz", "rg wrote 2 groups and text after the last separator (b'z'), expected 2 groups"),
    ],
)
def test_wrong_number_of_groups_is_an_error_that_counts_them(replacement: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        groups_of("(a)(b)").split(replacement)
    assert str(caught.value) == message


def test_separators_of_several_lines_are_random() -> None:
    one, other = (groups_of("(a)", in_line=False) for _ in range(2))
    assert one.separator != other.separator
    assert one.split(f"\n{one.separator}".encode()) == (b"\n",)


def test_plain_text_has_no_groups() -> None:
    assert groups_of("(a", verbatim=True) == Groups("(a", None, None, (), "\n", (), ())
