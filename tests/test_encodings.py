"""Encodings: each byte, each pair of bytes and each character are compared with what rg itself reads."""

import encodings.aliases
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from ripwrap._text import LABELS, byte_order_mark, decode, encode, shown
from support.effort import times

CODECS = {codec: label for label, codec in reversed(LABELS.items()) if codec}
"""Map from each encoding in which files can be changed to a label of it."""

MULTI_BYTE = ("utf-8", "utf-16-le", "utf-16-be", "gbk", "gb18030", "euc_jp", "cp932", "cp949")


def rg(file: Path, label: str) -> bytes | None:
    """Return the text of a file in UTF-8, as rg decodes it; None if rg does not know the label."""
    command = [sync.resolve().path, "--no-config", "--text", "--no-line-number", f"--encoding={label}", "^", str(file)]
    run = subprocess.run(command, capture_output=True, check=False)
    assert run.returncode == 0 or b"unknown encoding" in run.stderr, run.stderr
    return None if run.returncode else run.stdout


def decoded(file: Path, label: str, pieces: Sequence[bytes], newline: bytes = b"\n") -> Iterator[tuple[bytes, str]]:
    """Yield each of the pieces with the text that rg reads from it; each is on a line of its own."""
    file.write_bytes(newline.join((b"", *pieces, b"")))
    text = rg(file, label)
    assert text is not None
    lines = text.decode().split("\n")
    assert len(lines) == len(pieces) + 2
    return zip(pieces, lines[1:-1], strict=True)


def pairs(codec: str) -> list[bytes]:
    """Return each byte and each pair of bytes without a newline; for a single-byte encoding only each byte."""
    numbers = range(0, 65_536, times(31, 1))
    if codec.startswith("utf-16"):
        end = "\n".encode(codec)
        return [one for n in numbers if (one := n.to_bytes(2, "big")) != end]
    both = [n.to_bytes(2, "big") for n in numbers] if codec in MULTI_BYTE else []
    return [one for one in (*(bytes([n]) for n in range(256)), *both) if b"\n" not in one]


@pytest.mark.stress
@pytest.mark.parametrize("codec", CODECS)
def test_bytes_are_read_as_rg_reads_them_or_not_at_all(codec: str, tmp_path: Path) -> None:
    """Bytes of 35 encodings, of which rg reads some otherwise than Python's codecs."""
    refused = 0
    pieces = pairs(codec)
    for piece, text in decoded(tmp_path / "f", CODECS[codec], pieces, "\n".encode(codec)):
        try:
            assert decode(piece, codec) == text, piece
        except UnicodeDecodeError:
            assert codec in MULTI_BYTE, piece
            refused += "\ufffd" not in text
    assert refused <= len(pieces) * 0.05  # such as rows of NEC and IBM in EUC-JP


@pytest.mark.stress
@pytest.mark.parametrize("codec", MULTI_BYTE[1:])
def test_characters_are_written_so_that_rg_reads_them_or_not_at_all(codec: str, tmp_path: Path) -> None:
    """A replacement is written only if rg would read it back."""
    texts, pieces = list[str](), list[bytes]()
    for number in (*range(128, 0x300), *range(0x300, 0x110000, times(97, 1))):
        try:
            pieces.append(encode(chr(number), codec))
        except UnicodeEncodeError:
            continue
        texts.append(chr(number))
    read = [text for _, text in decoded(tmp_path / "f", CODECS[codec], pieces, "\n".encode(codec))]
    assert read == texts
    assert len(texts) > 100


@pytest.mark.parametrize(
    ("codec", "text"), [("euc_jp", "¥"), ("euc_jp", "〜"), ("cp932", "a\u2212"), ("gb18030", "\ue5e5"), ("koi8-u", "╬")]
)
def test_character_that_rg_reads_otherwise_is_refused(codec: str, text: str) -> None:
    """Python writes these characters, and rg reads their bytes as others."""
    with pytest.raises(UnicodeEncodeError) as raised:
        encode(text, codec)
    assert raised.value.object[raised.value.start] == text[-1]


@pytest.mark.slow
@pytest.mark.stress
def test_labels_are_those_of_rg(tmp_path: Path) -> None:
    """Each label of the table means its encoding for rg, and rg knows no other name of Python's."""
    file = tmp_path / "f"
    file.write_bytes(b"\n" + bytes(range(0x80, 0x100)) + b"\n")
    expected = {codec: rg(file, label) for codec, label in CODECS.items()}
    step = times(5, 1)
    for label in [*LABELS][::step]:
        text = rg(file, f" {label.upper()} ")
        assert text is not None, label
        assert not LABELS[label] or text == expected[LABELS[label]], label
    names = {*encodings.aliases.aliases, *encodings.aliases.aliases.values()}
    for name in sorted({*names, *(name.replace("_", "-") for name in names)} - {*LABELS})[::step]:
        assert rg(file, name) is None, name


@pytest.mark.rg_matrix
@pytest.mark.parametrize(
    ("codec", "label"),
    [
        *(("utf-8", label) for label in ("auto", "utf-8", "latin1")),
        *(
            (f"utf-16-{end}", label)
            for end in ("le", "be")
            for label in ("auto", "utf-8", "utf-16le", "utf-16be", "sjis")
        ),
    ],
)
@pytest.mark.parametrize("marks", [1, 2, 3])
def test_marks_are_left_out_as_rg_leaves_them_out(tmp_path: Path, codec: str, label: str, marks: int) -> None:
    """A file that was joined begins with two marks; a replacement in its directory failed for ever."""
    file = tmp_path / "a.txt"
    file.write_bytes(("\ufeff" * marks + "foo é foo\nfoo\n").encode(codec))
    text = rg(file, label)
    assert text is not None
    mark, read_as = byte_order_mark(file.read_bytes(), LABELS.get(label, ""))
    assert decode(file.read_bytes()[len(mark) :], read_as).encode() == text
    options: dict[str, Any] = {} if label == "auto" else {"encoding": label}
    sync.replace("foo", "new", cwd=tmp_path, **options).apply()
    assert rg(file, label) == text.replace(b"foo", b"new")
    assert file.read_bytes().startswith(mark)


@pytest.mark.rg_matrix
@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("marks", [1, 2, 3])
def test_tools_show_the_text_after_marks_that_rg_shows(tmp_path: Path, codec: str, marks: int) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(("\ufeff" * marks + "def foo():\n    return 1\n").encode(codec))
    text = rg(file, "auto")
    assert text is not None
    lines = text.decode().splitlines()
    assert [*sync.Workspace(tmp_path).read_file_result("a.py").blocks[0].lines] == [*map(shown, lines)]
    (match,) = sync.grep("foo", cwd=tmp_path).matches
    assert [line.text for line in sync.expand(match, cwd=tmp_path).lines] == lines
