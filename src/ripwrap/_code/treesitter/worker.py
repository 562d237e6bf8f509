"""Split files at their definitions in a worker process, because hostile source may make a parser hang or crash."""

import json
import weakref

from ripwrap._code.treesitter.chunker import syntax_chunks
from ripwrap._code.treesitter.parser import MAX_FILE_CHARS, is_available, is_supported
from ripwrap._code.windows import Chunk, window_chunks
from ripwrap._subprocess.worker import StartError, WorkerProcess, serve_requests
from ripwrap.errors import Hint, HintedText, RipwrapError

FILE_TIMEOUT = 20.0
"""Seconds for a file, after which the process is killed. `PARSE_TIMEOUT` is not enough, because it is checked only when
the parser reports progress, which a hanging parser does not do.
"""

IDLE_TIMEOUT = 60.0
"""Seconds without a request after which the process is ended. The time is long because the process starts slowly."""

_WORKER_CODE = "from ripwrap._code.treesitter.worker import serve; serve({idle!r})"


class SyntaxChunker:
    """Splitter of files at their definitions. It runs the parser in a worker process, for one file at a time.

    If the process hangs or crashes at a file, the file is split into windows of lines. The process ends when this
    object is deleted.

    Each index has its own splitter. So an index does not wait for the files of another index, and a file of one index
    cannot end the process of another index.
    """

    def __init__(self, *, seconds: float = FILE_TIMEOUT, idle: float = IDLE_TIMEOUT) -> None:
        """Set the limits for a file, and for the time without one; the process is started for the first file."""
        self._worker = WorkerProcess(_WORKER_CODE.format(idle=idle), seconds, idle)
        weakref.finalize(self, self._worker.kill)  # called when the interpreter ends, too

    def chunks_of(self, path: str, text: str) -> list[Chunk]:
        """Return the chunks of a file, split at its definitions.

        The file is split by lines if it is too large, its language has no grammar, the extra `syntax` is not installed,
        or the parser fails.
        """
        if len(text) > MAX_FILE_CHARS or not is_available() or not is_supported(path, text):
            return list(window_chunks(text))
        try:
            answer = self._worker.request([one.encode("utf-8", "surrogatepass") for one in (path, text)])
        except StartError as error:
            why = f"the process that splits files at their definitions does not work: {error}; pass "
            raise RipwrapError(HintedText(why, Hint("chunker", "windows"), " to split by lines")) from error
        if answer is None:
            return list(window_chunks(text))
        return [Chunk(*fields) for fields in json.loads(answer[0])]

    def close(self) -> None:
        """End the process; the next file starts another one."""
        self._worker.close()


def serve(idle: float) -> None:
    """Answer the requests of a `SyntaxChunker` on stdin until stdin ends; this runs in the worker process."""

    def answer(request: list[bytes]) -> list[bytes]:
        path, text = (part.decode("utf-8", "surrogatepass") for part in request)
        return [json.dumps(syntax_chunks(path, text)).encode()]

    serve_requests(answer, FILE_TIMEOUT, idle)
