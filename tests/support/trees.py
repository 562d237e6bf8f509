"""Hypothesis strategies for trees with ignore files, and functions that write them."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from hypothesis import strategies as st

from ripwrap._ignore.rules import KINDS
from ripwrap.binary import RgBinary

Tree: TypeAlias = dict[str, Any]

NAMES = ["a", "b", "ab", "a.b", "c", ".a", ".b", "é", "b ", "x[y", "{a}", "a,b", "\\", "!a", "#a", "\udcff", "a\nb"]
PIECES = ["a", "b", "c", "é", ".", "*", "**", "?", "/", "/**", "**/", "[ab]", "[!a]", "[b-x]", "{a,b}", "{**/a,c}"]
PIECES += ["{a/**,b}", "\\*", "\\b", "!", "#", " ", "\\ ", "\t", ",", "-", "^", "*a*"]
ODD = ["{", "}", "[", "]", "\\", "{a,{b,c}}", "[a", "\ufeff"]


def lines(pieces: Sequence[str]) -> st.SearchStrategy[str]:
    plain = st.builds("{}{}{}{}".format, *map(st.sampled_from, (["", "!"], ["", "/"], [*NAMES[:9], "*"], ["", "/"])))
    steps = st.lists(st.sampled_from(["a", "b", "c", ".a", "*", "**", "?"]), min_size=1, max_size=4).map("/".join)
    return st.one_of(plain, steps, st.lists(st.sampled_from(pieces), min_size=1, max_size=6).map("".join))


def texts(pieces: Sequence[str]) -> st.SearchStrategy[bytes]:
    joined = st.tuples(st.sampled_from(["\n", "\r\n"]), st.lists(lines(pieces), min_size=1, max_size=4))
    return joined.map(lambda drawn: os.fsencode(drawn[0].join(drawn[1])))


LEAVES: tuple[Any, ...] = (b"", b"", b"", "a", "..", "/etc", {})
"""Files, links and an empty folder."""


def trees(
    kinds: Sequence[str], pieces: Sequence[str], names: Sequence[str], leaves: Sequence[Any] = LEAVES
) -> st.SearchStrategy[Tree]:
    """Draw folders of folders, files (bytes) and links (strings), with ignore files in any."""
    text = texts(pieces)
    optional: dict[str, st.SearchStrategy[Any]] = {kind: text for kind in kinds if kind != KINDS[-1]}
    if KINDS[-1] in kinds:
        optional[".git"] = st.fixed_dictionaries({"info": st.fixed_dictionaries({"exclude": text})})
    extras = st.fixed_dictionaries({}, optional=optional)

    def folders(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Tree]:
        files = st.dictionaries(st.sampled_from(names), inner, min_size=1, max_size=5)
        return st.builds(lambda files, extras: {**files, **extras}, files, extras)

    return folders(st.recursive(st.sampled_from(leaves), folders, max_leaves=10))


def grow(root: Path, tree: Tree) -> Iterator[str]:
    """Write a tree and return its folders, relative to `root`."""
    for name, content in tree.items():
        path = root / name
        if isinstance(content, dict):
            path.mkdir()
            yield name
            yield from (f"{name}/{inner}" for inner in grow(path, content))
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.symlink_to(content)


@contextlib.contextmanager
def grown(tree: Tree) -> Iterator[tuple[Path, list[str]]]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(os.path.realpath(name), "root")
        root.mkdir()
        yield root, list(grow(root, tree))


def known_to(rg: RgBinary) -> tuple[tuple[str, ...], list[str], list[str]]:
    """Return what an rg reads as the newest does: kinds of ignore files, pieces of lines, and names."""
    if rg.version >= (15,):
        return KINDS, PIECES + ODD, NAMES
    if rg.version >= (14,):
        return KINDS, PIECES, NAMES
    # rg 13 reads no ignore file beyond a nested repository, and its `**` ends at a newline.
    return KINDS[:-1], PIECES, [name for name in NAMES if "\n" not in name]
