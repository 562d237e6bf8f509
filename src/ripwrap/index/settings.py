"""Arguments of `Index`: their checks, the chunker that splits files, and the directory of the index."""

import hashlib
import os
from pathlib import Path
from typing import Literal, TypeAlias

from ripwrap._code.treesitter.chunker import chunker_version
from ripwrap._code.treesitter.parser import check_installed, is_available
from ripwrap._code.treesitter.worker import CodeReader
from ripwrap._code.windows import WINDOW_VERSION, window_chunks
from ripwrap._text import shown
from ripwrap.binary import cache
from ripwrap.errors import Hint, HintedText, RipwrapError
from ripwrap.index.branches import key_of
from ripwrap.index.splitting import Chunker
from ripwrap.index.storage.files import FOLDER
from ripwrap.options import StrPath

IndexLocation: TypeAlias = Literal["project"] | StrPath | None
ChunkerName: TypeAlias = Literal["auto", "syntax", "windows"]

WINDOW_CHUNKER = Chunker(WINDOW_VERSION, lambda _, text: window_chunks(text))
"""Chunker that splits files between lines, without a parser."""

_HYBRID_WEIGHT = Hint("hybrid_weight", kind="correct")


def check_weight(weight: float | None) -> None:
    """Check the weight of embeddings in the score."""
    if weight is None:
        return
    if not isinstance(weight, (int, float)) or isinstance(weight, bool):
        raise TypeError(HintedText(_HYBRID_WEIGHT, f" must be a number from 0 to 1, or None; got {weight!r}"))
    if not 0 <= weight <= 1:
        raise ValueError(HintedText(_HYBRID_WEIGHT, f" must be from 0 to 1, got {weight}"))


def check_workers(workers: int | None) -> None:
    """Check the number of worker processes."""
    if workers is None:
        return
    option = Hint("workers", kind="correct")
    if not isinstance(workers, int) or isinstance(workers, bool):
        raise TypeError(HintedText(option, f" must be an int of 0 or more, or None; got {workers!r}"))
    if workers < 0:
        raise ValueError(HintedText(option, f" must be 0 or more, got {workers}"))


def weight_without_embedder_error() -> ValueError:
    """Return the error for an index that has a `hybrid_weight` but no embedder."""
    return ValueError(HintedText(_HYBRID_WEIGHT, " needs an embedder; pass ", Hint("embedder")))


def make_chunker(wanted: ChunkerName) -> Chunker:
    """Return the chunker with the name `wanted`, such as 'syntax'."""
    if wanted not in ("auto", "syntax", "windows"):
        raise ValueError(f"chunker must be 'auto', 'syntax' or 'windows', got {wanted!r}")
    if wanted == "windows" or not is_available():
        if wanted == "syntax":
            check_installed()
        return WINDOW_CHUNKER
    process = CodeReader()
    return Chunker(chunker_version(), process.chunks_of, process.close)


def index_folder(root: Path, location: IndexLocation) -> Path:
    """Return the directory in which the index of `root` is stored."""
    if location == "project":
        return root / FOLDER
    if location is not None and not os.fspath(location):
        raise ValueError(HintedText(Hint("location", kind="correct"), " must name a directory, got ''"))
    if location is not None:
        return Path(os.path.realpath(location))
    folder = cache.folder()
    if reason := cache.why_untrusted(folder):
        wrong = f"could not use the cache {shown(str(folder))} for an index: {reason}"
        raise RipwrapError(HintedText(wrong, "; pass ", Hint("location")))
    name = hashlib.blake2b(os.fsencode(key_of(root)), digest_size=16).hexdigest()
    return folder / "index" / name
