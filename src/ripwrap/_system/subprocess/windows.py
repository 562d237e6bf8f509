"""Processes on Windows: a child and all processes that it starts are in a job, which ends with this process.

A job object (https://learn.microsoft.com/windows/win32/procthread/job-objects) is the counterpart of a process group.
The child starts suspended and then joins the job. Otherwise, it could start a process before it joins, and that process
would be outside of the job.
"""

import ctypes
import functools
import logging
import msvcrt
import os
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Final

from ripwrap._system.concurrency import poll_intervals

if sys.platform != "win32":
    raise ImportError("ripwrap._system.subprocess.windows can only be imported on Windows")

from ctypes import wintypes

_LOGGER = logging.getLogger("ripwrap")

KILLED_RETURNCODE: Final = 0x52495057
"""Exit code of a child after `kill()`: a number that no program chooses (rg ends with 0, 1 or 2)."""

PIPE_BYTES: Final = 256 * 1024
"""Capacity of a pipe in bytes. The default of Windows is 4 KiB, with which the writer would often wait for the reader.
"""

_CREATE_SUSPENDED: Final = 0x4
_PROCESS_TERMINATE, _PROCESS_SET_QUOTA, _PROCESS_SUSPEND_RESUME = 0x1, 0x100, 0x800
_GENERIC_READ: Final = 0x8000_0000
_SHARE_ALL: Final = 0x7
_ACCOUNTING_INFORMATION, _EXTENDED_LIMIT_INFORMATION = 1, 9
_LIMIT_KILL_ON_JOB_CLOSE: Final = 0x2000
_POLL_SECONDS: Final = 0.005


class _Accounting(ctypes.Structure):  # JOBOBJECT_BASIC_ACCOUNTING_INFORMATION
    _fields_ = (
        ("times", ctypes.c_int64 * 4),
        ("page_faults", wintypes.DWORD),
        ("processes", wintypes.DWORD),
        ("active", wintypes.DWORD),
        ("terminated", wintypes.DWORD),
    )


class _Limits(ctypes.Structure):  # JOBOBJECT_EXTENDED_LIMIT_INFORMATION
    _fields_ = (
        ("times", ctypes.c_int64 * 2),
        ("flags", wintypes.DWORD),
        ("working_set", ctypes.c_size_t * 2),
        ("active", wintypes.DWORD),
        ("affinity", ctypes.c_size_t),
        ("classes", wintypes.DWORD * 2),
        ("io", ctypes.c_uint64 * 6),
        ("memory", ctypes.c_size_t * 4),
    )


_HANDLE, _DWORD, _BOOL, _POINTER = wintypes.HANDLE, wintypes.DWORD, wintypes.BOOL, ctypes.c_void_p
_KERNEL = ctypes.WinDLL("kernel32", use_last_error=True)
_NT = ctypes.WinDLL("ntdll")

_NT.NtResumeProcess.argtypes = (_HANDLE,)
for _name, _result, *_arguments in (
    ("CreateJobObjectW", _HANDLE, _POINTER, wintypes.LPCWSTR),
    ("SetInformationJobObject", _BOOL, _HANDLE, ctypes.c_int, _POINTER, _DWORD),
    ("QueryInformationJobObject", _BOOL, _HANDLE, ctypes.c_int, _POINTER, _DWORD, _POINTER),
    ("AssignProcessToJobObject", _BOOL, _HANDLE, _HANDLE),
    ("TerminateJobObject", _BOOL, _HANDLE, wintypes.UINT),
    ("OpenProcess", _HANDLE, _DWORD, _BOOL, _DWORD),
    ("CloseHandle", _BOOL, _HANDLE),
    ("CreatePipe", _BOOL, _POINTER, _POINTER, _POINTER, _DWORD),
    ("PeekNamedPipe", _BOOL, _HANDLE, _POINTER, _DWORD, _POINTER, _POINTER, _POINTER),
    ("ReOpenFile", _HANDLE, _HANDLE, _DWORD, _DWORD, _DWORD),
):
    _function = getattr(_KERNEL, _name)
    _function.restype, _function.argtypes = _result, _arguments


def _error() -> OSError:
    return ctypes.WinError(ctypes.get_last_error())


class Job:
    """Job object. When it is closed or garbage collected, or this process ends, Windows kills the processes in it."""

    def __init__(self) -> None:
        self._handle = _KERNEL.CreateJobObjectW(None, None)
        if not self._handle:
            raise _error()
        self.close = weakref.finalize(self, _KERNEL.CloseHandle, self._handle)
        self.close.atexit = False  # Windows closes the handle at exit; until then a thread may still use it
        limits = _Limits(flags=_LIMIT_KILL_ON_JOB_CLOSE)
        size = ctypes.sizeof(limits)
        if not _KERNEL.SetInformationJobObject(self._handle, _EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), size):
            error = _error()
            self.close()
            raise error

    def add(self, process: int) -> None:
        """Put a process into the job, given the handle of the process."""
        if not _KERNEL.AssignProcessToJobObject(self._handle, process):
            raise _error()

    def terminate(self) -> None:
        """Kill all processes of the job; later calls have no effect."""
        _KERNEL.TerminateJobObject(self._handle, KILLED_RETURNCODE)

    def is_empty(self) -> bool:
        """Return True if no process of the job runs, or if Windows cannot tell."""
        about = _Accounting()
        size = ctypes.sizeof(about)
        if not _KERNEL.QueryInformationJobObject(
            self._handle, _ACCOUNTING_INFORMATION, ctypes.byref(about), size, None
        ):
            return True
        return bool(about.active == 0)


def make_job(process: int) -> Job:
    """Return a new job that contains a process, given the handle of the process."""
    job = Job()
    try:
        job.add(process)
    except OSError:
        job.close()
        raise
    return job


class Popen(subprocess.Popen[bytes]):
    """A child process."""

    job: Job | None = None


def start(
    argv: Sequence[str],
    *,
    stdin: int | IO[bytes],
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    env: Mapping[str, str],
    cwd: str | None = None,
    make_job: Callable[[int], Job] = make_job,
) -> Popen:
    """Start a program without a window, in a job of its own; a pipe for its output holds `PIPE_BYTES` bytes.

    Windows refuses to make a job for a process in a job that restricts the user interface. The program then runs
    without a job: `kill()` ends the program, but not the processes that the program started. A warning is logged.
    """
    reader, writer = _make_pipe() if stdout == subprocess.PIPE else (None, stdout)
    try:
        popen = Popen(
            argv,
            stdin=stdin,
            stdout=writer,
            stderr=stderr,
            env=env,
            cwd=cwd,
            bufsize=0,
            creationflags=subprocess.CREATE_NO_WINDOW | _CREATE_SUSPENDED,
        )
    except BaseException:
        if reader is not None:
            reader.close()
        raise
    finally:
        if reader is not None and not isinstance(writer, int):
            writer.close()
    if reader is not None:
        popen.stdout = reader
    try:
        _put_into_job(popen, make_job)
    except BaseException:
        _terminate(popen)
        popen.wait()
        for pipe in (popen.stdin, popen.stdout):
            if pipe is not None:
                pipe.close()
        raise
    return popen


def _put_into_job(popen: Popen, make_job: Callable[[int], Job]) -> None:
    """Put a suspended child into a job, and let it run."""
    # `Popen` has closed the handle of the thread, so the whole process is resumed, as in psutil.
    process = _KERNEL.OpenProcess(_PROCESS_TERMINATE | _PROCESS_SET_QUOTA | _PROCESS_SUSPEND_RESUME, False, popen.pid)
    if not process:
        raise _error()
    try:
        try:
            popen.job = make_job(process)
        except OSError as error:
            _warn_once(f"programs run without a job object, so the processes that they start may outlive them: {error}")
        if status := _NT.NtResumeProcess(process):
            raise OSError(f"could not resume the new process of {popen.args!r}: status {status & 0xFFFF_FFFF:#010x}")
    finally:
        _KERNEL.CloseHandle(process)


@functools.cache
def _warn_once(text: str) -> None:
    _LOGGER.warning(text)


def _make_pipe() -> tuple[IO[bytes], IO[bytes]]:
    """Return the two ends of a pipe that holds `PIPE_BYTES` bytes; `subprocess` has no option for the size."""
    reader, writer = wintypes.HANDLE(), wintypes.HANDLE()
    if not _KERNEL.CreatePipe(ctypes.byref(reader), ctypes.byref(writer), None, PIPE_BYTES):
        raise _error()
    return (
        open(msvcrt.open_osfhandle(int(reader.value or 0), os.O_RDONLY), "rb", buffering=0),
        open(msvcrt.open_osfhandle(int(writer.value or 0), 0), "wb", buffering=0),
    )


def widen_pipe(pipe: IO[bytes]) -> None:
    """Do nothing, because `start()` makes pipes that are large enough."""


def peek(popen: Popen) -> int | None:
    """Return the exit code of a child, or `None` if it still runs."""
    return popen.poll()


def kill(popen: Popen) -> None:
    """Kill all processes in the job of a child, even if the child has ended. Without a job, kill only the child."""
    if popen.job is not None:
        popen.job.terminate()
    elif popen.poll() is None:
        _terminate(popen)


def _terminate(popen: Popen) -> None:
    with suppress(PermissionError):  # the child has just ended
        os.kill(popen.pid, KILLED_RETURNCODE)  # TerminateProcess; the handle of `Popen` keeps the id from being reused


def wait_for_output(pipe: IO[bytes], seconds: float) -> bool:
    """Wait at most `seconds` for bytes in a pipe, or for its end; return True if a read would not block.

    Ctrl-C interrupts the pauses between checks; it would not interrupt a read.
    """
    if _peek_pipe(pipe) != 0:
        return True
    for pause in poll_intervals(seconds, _POLL_SECONDS):
        time.sleep(pause)
        if _peek_pipe(pipe) != 0:
            return True
    return False


def is_whole(popen: Popen, pipe: IO[bytes]) -> bool:
    """Return True if no process can still write to a pipe; the bytes in the pipe are then the end of the output."""
    if _peek_pipe(pipe) is None:
        return True
    # Windows reports the end of a pipe only when all its bytes are read.
    return popen.poll() is not None and (popen.job is None or popen.job.is_empty())


def _peek_pipe(pipe: IO[bytes]) -> int | None:
    """Return the number of bytes in a pipe, or `None` at its end."""
    available = wintypes.DWORD()
    handle = msvcrt.get_osfhandle(pipe.fileno())
    if _KERNEL.PeekNamedPipe(handle, None, 0, None, ctypes.byref(available), None):
        return available.value
    return None  # ERROR_BROKEN_PIPE; any other error is raised by the next read


def read_beginning(file: IO[bytes], size: int) -> bytes:
    """Return the first `size` bytes of a file that a child writes; the child's offset does not move."""
    handle = _KERNEL.ReOpenFile(msvcrt.get_osfhandle(file.fileno()), _GENERIC_READ, _SHARE_ALL, 0)
    if handle in (None, _HANDLE(-1).value):
        raise _error()
    with open(msvcrt.open_osfhandle(handle, os.O_RDONLY), "rb", buffering=0) as again:
        return again.read(size)
