"""Cache of the texts of documents, by a hash of their content, in a directory of the user."""

import hashlib
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from ripwrap._concurrency import replace_file

_VERSION = "1"
"""Version of the files; other versions have other names, and are deleted as the oldest ones."""

MAX_BYTES = 256 << 20
"""Size of the cache above which the texts that were not used for the longest time are deleted."""

MAX_TEXT_BYTES = MAX_BYTES // 8
"""Maximum size of a text that is stored."""

_LEFT_OVER_SECONDS = 3600
"""Age in seconds of a temporary file that a killed process has left."""

_TEMPORARY = "writing-"


class TextCache:
    """Files with texts; a file that cannot be read or written is as one that is not there."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        """Set the directory, which is made when the first text is stored."""
        self._folder = folder
        self._max_bytes = max_bytes
        self._has_grown = False

    @staticmethod
    def key(reader: str, content: bytes) -> str:
        """Return the name for the text of a document.

        Args:
            reader: What reads the document, with its version.
            content: Bytes of the document.
        """
        digest = hashlib.sha256(f"{_VERSION}\0{reader}\0".encode())
        digest.update(content)
        return digest.hexdigest()

    def get(self, key: str) -> bytes | None:
        """Return a stored text; `None` if there is none, or if it is damaged."""
        path = self._folder / key
        try:
            stored = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        digest, text = stored[:32], stored[32:]
        return text if hashlib.sha256(text).digest() == digest else None

    def put(self, key: str, text: bytes) -> None:
        """Store a text."""
        if len(text) > min(MAX_TEXT_BYTES, self._max_bytes):
            return
        with suppress(OSError):
            self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            number, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=self._folder)
            try:
                with open(number, "wb") as file:
                    file.write(hashlib.sha256(text).digest())
                    file.write(text)
                replace_file(Path(name), self._folder / key)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise
            self._has_grown = True

    def trim(self) -> None:
        """Delete the oldest texts if the cache is too large, and what killed processes have left."""
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
