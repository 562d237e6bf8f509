"""Cache of the texts of documents. Each text is a file, whose name is a hash of the document and of its adapter."""

import hashlib
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from ripwrap._concurrency import defer_interrupts, replace_file

_VERSION = "1"
"""Version of the file format. The names of the files depend on it, so files of other versions are never read."""

MAX_BYTES = 256 << 20
"""Maximum size of the cache in bytes. After a search, the least recently used texts are deleted down to this size."""

MAX_TEXT_BYTES = MAX_BYTES // 8
"""Maximum size in bytes of a text that is stored."""

_LEFT_OVER_SECONDS = 3600
"""Age in seconds above which a temporary file is deleted, because a killed process must have left it."""

_TEMPORARY = "writing-"


class TextCache:
    """Cache of texts in files. Errors are ignored: a text that cannot be read or written counts as not stored."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        """Set the directory, which is made when the first text is stored."""
        self._folder = folder
        self._max_bytes = max_bytes
        self._has_grown = False

    @staticmethod
    def key(reader: str, content: bytes) -> str:
        """Return the key of the text of a document: a hash, which is also the name of the file in the cache."""
        digest = hashlib.sha256(f"{_VERSION}\0{reader}\0".encode())
        digest.update(content)
        return digest.hexdigest()

    def get(self, key: str) -> bytes | None:
        """Return the text with this key; `None` if no text is stored, or if the stored text is damaged."""
        path = self._folder / key
        try:
            stored = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        digest, text = stored[:32], stored[32:]
        return text if hashlib.sha256(text).digest() == digest else None

    def put(self, key: str, text: bytes) -> None:
        """Store the text with this key, unless it is too large."""
        if len(text) > min(MAX_TEXT_BYTES, self._max_bytes):
            return
        with suppress(OSError):
            self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with defer_interrupts():
                number, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=self._folder)
                try:
                    with open(number, "wb") as file:
                        file.write(hashlib.sha256(text).digest())
                        file.write(text)
                    replace_file(Path(name), self._folder / key)
                finally:
                    Path(name).unlink(missing_ok=True)
            self._has_grown = True

    def trim(self) -> None:
        """Delete old temporary files of killed processes and, if the cache is too large, the least recently used texts.

        If no text was stored since the last call, do nothing.
        """
        if not self._has_grown:
            return
        self._has_grown = False
        with suppress(OSError):
            files = [(entry.stat(), entry) for entry in os.scandir(self._folder) if entry.is_file()]
            total = sum(state.st_size for state, _ in files)
            now = time.time()
            for state, entry in sorted(files, key=lambda file: file[0].st_mtime):
                is_left_over = entry.name.startswith(_TEMPORARY) and now - state.st_mtime > _LEFT_OVER_SECONDS
                if total > self._max_bytes or is_left_over:
                    with suppress(OSError):
                        os.unlink(entry.path)
                        total -= state.st_size
