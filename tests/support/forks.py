"""Python programs that start in 10 ms instead of 250: each is a fork of a process that has imported ripwrap.

`python -W error forks.py` reads the programs from stdin, one in a line, and writes the exit code of each to stdout.
"""

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

IMPORTED = (
    *("asyncio", "anyio._backends._asyncio", "filelock", "pydantic._internal._serializers", "pydantic.dataclasses"),
    *("sqlite3", "tantivy", "ripwrap", "ripwrap.index", "ripwrap.sync", "ripwrap.workspace.core"),
    "ripwrap._code.treesitter.worker",
)
"""Modules that programs import, and those that ripwrap and its packages import late."""

_RIGHTS = "-dac_override,-dac_read_search"
UNPRIVILEGED = (
    ("setpriv", f"--bounding-set={_RIGHTS}", f"--inh-caps={_RIGHTS}")
    if os.name == "posix" and os.geteuid() == 0
    else ()
)
"""Launcher that takes root's right to read and write any file from a program, and from the rg that it starts."""

_LOADED: dict[str, ModuleType] = {}
_SERVERS: dict[tuple[str, ...], "subprocess.Popen[str]"] = {}


def run(
    argv: list[str], code: str, *, cwd: Path, env: Mapping[str, str], launcher: tuple[str, ...] = ()
) -> "subprocess.CompletedProcess[str]":
    """Run code as the program `argv`, with warnings as errors; each `launcher` has a server of its own."""
    server = _server(launcher)
    with TemporaryDirectory() as folder:
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps([argv, code, str(cwd), dict(env), folder]) + "\n")
        server.stdin.flush()
        try:
            returncode = int(server.stdout.readline())
        except BaseException:  # such as the timeout of the test
            _end(_SERVERS.pop(launcher))
            raise
        stdout, stderr = (Path(folder, name).read_text("utf-8") for name in ("stdout", "stderr"))
    return subprocess.CompletedProcess(argv, returncode, stdout, stderr)


def _server(launcher: tuple[str, ...]) -> "subprocess.Popen[str]":
    if launcher in _SERVERS:
        return _SERVERS[launcher]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    argv, pipe = [*launcher, sys.executable, "-W", "error", __file__], subprocess.PIPE
    server = subprocess.Popen(argv, stdin=pipe, stdout=pipe, encoding="utf-8", env=env, start_new_session=True)
    _SERVERS[launcher] = server
    atexit.register(_end, server)
    return server


def _end(server: "subprocess.Popen[str]") -> None:
    """End the server and the program that it waits for."""
    with server:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)


def _become(argv: list[str], code: str, cwd: str, env: dict[str, str], output: str) -> None:
    """Make this process the program."""
    for number, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
        opened = os.open(os.path.join(output, name), os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[:] = argv
    sys.path[0] = os.path.dirname(argv[0])
    main: Any = ModuleType("__main__")
    sys.modules["__main__"] = main
    main.__file__ = argv[0]
    exec(compile(code, argv[0], "exec"), vars(main))


def _keep_loaded() -> None:
    """Keep the modules of the server when a child ends; taking them apart would copy all their memory.

    The child has run all its exit functions. Its own modules and `__main__` are taken apart as in any program.
    """
    for name in _LOADED:
        sys.modules.pop(name, None)


def _serve() -> None:
    for name in IMPORTED:
        module = import_module(name)
        for public in getattr(module, "__all__", ()):
            getattr(module, public)  # ripwrap loads most of its names when they are first used
    _LOADED.update(sys.modules)
    for name in ("__main__", "builtins", "sys"):
        del _LOADED[name]
    atexit.register(_keep_loaded)
    gc.freeze()  # otherwise each child visits, and so copies, all these modules when it ends
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _become(*json.loads(line))
            return  # the program ends as any other, with what Python does at its end
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    this = sys.modules["__main__"]  # a module that no name refers to loses its globals
    _serve()
