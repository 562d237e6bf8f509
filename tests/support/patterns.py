"""Hypothesis strategies for regular expressions with a text that likely matches.

The alphabets are small, so that different parts of a pattern often match the same text.
"""

from hypothesis import strategies as st

_LETTERS = st.sampled_from("aabbkkssKSé\u017f\u212aÉ漢 -")
_ESCAPED = st.sampled_from([(r"\.", "."), (r"\x61", "a"), (r"\x{4B}", "K"), (r"\t", "\t"), (r"\(", "("), ("}", "}")])
_CLASSES = st.sampled_from(
    [(".", "é"), (r"\w", "k"), (r"\S", "\u017f"), ("[a-k]", "b"), ("[^a]", "K"), ("[]s]", "]"), (r"[\]b]", "b")]
)
_NOTHING = st.sampled_from([(r"\b", ""), (r"\B", ""), ("^", ""), ("$", ""), ("", ""), ("(?i)", ""), ("(?-i)", "")])
_REPEATS = st.sampled_from(
    [("?", 0), ("?", 1), ("*", 0), ("*", 2), ("+", 1), ("+", 2), ("+?", 1), ("{2}", 2), ("{0,2}", 0), ("{1,}", 3)]
)
_OPENINGS = st.sampled_from(["(", "(?:", "(?i:", "(?s-i:", "(?x:", "(?-u:"])
NOISE = st.text(st.sampled_from("abksKS\u017f\u212aé \n"), max_size=5)

ENCODINGS = ("utf-8", "utf-8", "latin-1", "utf-16", "utf-8-sig", "NUL", "late NUL", "crlf")
"""Encodings of a file that `encoded()` knows; "long" is another, of a file larger than the indexed part."""

Sample = tuple[str, str]


def encoded(text: str, encoding: str) -> bytes:
    """Return a text as the content of a file."""
    raw = text.encode("utf-8")
    match encoding:
        case "NUL":
            return b"\0" + raw
        case "late NUL":
            return raw + b"\n" + (b"x" * 99 + b"\n") * 1_000 + b"\0" + raw
        case "long":
            return (b"x" * 999 + b"\n") * 1_010 + raw
        case "crlf":
            return raw.replace(b"\n", b"\r\n")
        case _:
            return text.encode(encoding, "replace")


@st.composite
def samples(draw: st.DrawFn, depth: int = 0) -> Sample:
    """Draw a pattern with a text that it likely matches."""
    kinds = ["word", "word", "word", "escaped", "class", "nothing", "letter"]
    kind = draw(st.sampled_from(["sequence", "group", "alternation"] * 3 + kinds if depth < 3 else kinds))
    if kind == "word":
        text = draw(st.text(_LETTERS, min_size=3, max_size=6))
        return text, text
    if kind == "letter":
        letter = draw(_LETTERS)
        return _repeated((letter, letter), draw(_REPEATS))
    if kind == "sequence":
        parts = draw(st.lists(samples(depth + 1), min_size=2, max_size=4))
        return "".join(pattern for pattern, _ in parts), "".join(text for _, text in parts)
    if kind == "alternation":
        parts = draw(st.lists(samples(depth + 1), min_size=1, max_size=3))
        chosen = draw(st.sampled_from(parts))
        return draw(_OPENINGS) + "|".join(pattern for pattern, _ in parts) + ")", chosen[1]
    if kind == "group":
        pattern, text = draw(samples(depth + 1))
        group = f"{draw(_OPENINGS)}{pattern})", text
        return _repeated(group, draw(_REPEATS)) if draw(st.booleans()) else group
    return draw({"escaped": _ESCAPED, "class": _CLASSES, "nothing": _NOTHING}[kind])


def _repeated(part: Sample, repeat: tuple[str, int]) -> Sample:
    return part[0] + repeat[0], part[1] * repeat[1]
