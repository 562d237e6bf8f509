"""Run `tests/windows`, or the main suite, with CPython for Windows under Wine; all comes from Debian and PyPI.

python311.dll and the extension modules come from the wheel of panda3d, which contains those of python.org. The standard
library's Python modules are the same on all systems. They come from the Python that runs this script, which must be
3.11. All files are in a folder outside the work tree (`RIPWRAP_WINE_DIR` [default: ~/.cache/ripwrap-wine]). Later runs
reuse it if it is complete and has the same versions.

Usage: python scripts/windows_tests.py [--make-only] [--main] [PYTEST ARGUMENTS]

With `--main`, the quick tests of the main suite run in place of `tests/windows`.
"""

import codecs
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

ROOT = Path(__file__).parent.parent
SOURCES = Path(__file__).parent / "wine"
HOME = Path(os.environ.get("RIPWRAP_WINE_DIR") or Path.home() / ".cache" / "ripwrap-wine")

PANDA3D = "panda3d==1.10.16"
PACKAGES = ["wine", "wine64", "gcc-mingw-w64-x86-64-win32"]
GCC = "x86_64-w64-mingw32-gcc"
OBJDUMP = "x86_64-w64-mingw32-objdump"

DOWNLOAD_SECONDS = 600
CALL_SECONDS = 300
SUITE_SECONDS = 1800
MAIN_SUITE_SECONDS = 3600

WINE = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RIPWRAP_", "RIPGREP_"))},
    "WINEPREFIX": str(HOME / "prefix"),
    "WINEDEBUG": "-all",
    "WINEDLLOVERRIDES": "mscoree,mshtml=",  # or `wineboot` offers to download Mono and Gecko
}


def main(arguments: Sequence[str]) -> int:
    """Make the folder unless it is complete, and run the tests; return pytest's exit code."""
    if sys.version_info[:2] != (3, 11):
        raise SystemExit("windows_tests: run it with Python 3.11: python311.dll needs the standard library of 3.11")
    begun = time.monotonic()
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs at once would end each other's tests with `wineserver -k`
        make()
        say(f"the environment is ready after {time.monotonic() - begun:.0f} s")
        if "--make-only" in arguments:
            return 0
        with server():
            return test(arguments)


def say(text: str) -> None:
    """Print a line of this script at once, so that it keeps its order among the lines of programs."""
    print(f"windows_tests: {text}", flush=True)


def run(*command: str | Path, seconds: float = CALL_SECONDS, retry: bool = False, env: dict[str, str] = WINE) -> str:
    """Run a program and return its output; with `retry`, run it a second time if it fails."""
    try:
        done = subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
        failure = f"exit code {done.returncode}\n{done.stdout[-4000:]}" if done.returncode else ""
    except subprocess.TimeoutExpired:
        failure = f"it did not end within {seconds} seconds"
    if not failure:
        return done.stdout
    if retry:
        say(f"trying again: {command[0]}: {failure}")
        return run(*command, seconds=seconds, env=env)
    raise SystemExit(f"windows_tests: {' '.join(map(str, command))}: {failure}")


def make() -> None:
    """Make the whole environment: Wine, a compiler, the Wine prefix, the Python for Windows and its packages."""
    install_programs()
    made_of = [run("wine", "--version"), sys.version, PANDA3D, Path(__file__).read_text()]
    made_of += [path.read_text() for path in sorted(SOURCES.iterdir())]
    state, complete = hashlib.sha256("\0".join(made_of).encode()).hexdigest(), HOME / "complete"
    if complete.exists() and complete.read_text() == state:
        return
    complete.unlink(missing_ok=True)
    for name in ("prefix", "py", "packages", "downloads"):
        shutil.rmtree(HOME / name, ignore_errors=True)
    say(f"making {HOME} with {made_of[0].strip()}")
    run(GCC, "-municode", "-O1", "-o", folder("py") / "python.exe", SOURCES / "python.c")
    make_python()
    install_packages()
    make_prefix()
    complete.write_text(state)


def install_programs() -> None:
    """Install Wine and the compiler from Debian if one of them is missing."""
    if all(map(shutil.which, ("wine", "wineserver", GCC))):
        return
    say(f"installing {', '.join(PACKAGES)}")
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run(*root, "apt-get", "update", "-qq", seconds=DOWNLOAD_SECONDS, retry=True, env=env)
    install = (*root, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES)
    run(*install, seconds=2 * DOWNLOAD_SECONDS, retry=True, env=env)


def folder(*names: str) -> Path:
    """Make a folder below `HOME`, and return its path."""
    path = HOME.joinpath(*names)
    path.mkdir(parents=True, exist_ok=True)
    return path


def pip(*arguments: str | Path, seconds: float = DOWNLOAD_SECONDS) -> None:
    """Run the pip of this Python."""
    run(sys.executable, "-m", "pip", "--quiet", *arguments, seconds=seconds, retry=True, env=dict(os.environ))


FOR_WINDOWS = [
    "--platform=win_amd64",
    "--python-version=3.11",
    "--implementation=cp",
    "--only-binary=:all:",
    "--no-deps",
]


def make_python() -> None:
    """Put python311.dll, python3.dll, the extension modules and the standard library into `py`."""
    downloads, python = folder("downloads"), folder("py")
    pip("download", *FOR_WINDOWS, "--dest", downloads, PANDA3D)
    (wheel,) = downloads.glob("panda3d-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            above, _, name = member.filename.rpartition("/")
            if above != "deploy_libs" or not name.endswith((".pyd", ".dll")):
                continue
            beside = name == "python311.dll" or name.startswith("VCRUNTIME140")
            target = python if beside else folder("py", "DLLs")
            (target / name).write_bytes(archive.read(member))
    shutil.rmtree(downloads)
    make_stable_abi(python)
    standard = sysconfig.get_path("stdlib")
    left_out = shutil.ignore_patterns(
        "site-packages", "dist-packages", "lib-dynload", "_sysconfigdata*", "__pycache__", "config-*",
        *("test", "tests", "idlelib", "tkinter", "ensurepip", "turtledemo"),
    )  # fmt: skip
    shutil.copytree(standard, python / "Lib", ignore=left_out)
    # The importer in the DLL is that of 3.11.9. It calls a class method that was an instance method before 3.11.9.
    edit(
        python / "Lib" / "importlib" / "metadata" / "__init__.py",
        r"(?<!@classmethod\n)    def invalidate_caches\(cls\)",
        "    @classmethod\n    def invalidate_caches(cls)",
    )


def make_stable_abi(python: Path) -> None:
    """Make the python3.dll that abi3 wheels load; it forwards every name to python311.dll."""
    listed = run(OBJDUMP, "-p", python / "python311.dll")
    table = listed[listed.index("[Ordinal/Name Pointer] Table") :]
    names = re.findall(r"\s(_?Py\w+)$", table, re.MULTILINE)
    exports = python / "python3.def"
    exports.write_text("LIBRARY python3.dll\nEXPORTS\n" + "".join(f"{name}=python311.{name}\n" for name in names))
    flags = ("-shared", "-nostdlib", "-Wl,-e,DllMain")
    run(GCC, *flags, "-o", python / "python3.dll", SOURCES / "python3.c", exports)


def install_packages() -> None:
    """Install the wheels for Windows, in the versions of `requirements.txt`."""
    packages = folder("packages")
    pip("install", *FOR_WINDOWS, "--target", packages, "--requirement", SOURCES / "requirements.txt")
    # At its start trio uses an ioctl that Wine 8 lacks. If no provider hooks sockets, the other ioctl returns the same
    # handle (https://learn.microsoft.com/en-us/windows/win32/winsock/winsock-ioctls).
    module = packages / "trio" / "_core" / "_io_windows.py"
    edit(module, r"which=WSAIoctls\.SIO_BSP_HANDLE_SELECT\b", "which=WSAIoctls.SIO_BASE_HANDLE")


def edit(module: Path, pattern: str, replacement: str) -> None:
    """Replace all matches of a pattern in an installed module; end with an error if there is none."""
    text, count = re.subn(pattern, replacement, module.read_text("utf-8"))
    if not count:
        raise SystemExit(f"windows_tests: {module} has no match of {pattern!r}; is this edit still needed?")
    module.write_text(text, "utf-8")


def make_prefix() -> None:
    """Make the Wine prefix, which has drive `C:`, and add a bcryptprimitives.dll."""
    with server():
        pass
    system = HOME / "prefix" / "drive_c" / "windows" / "system32"
    source = SOURCES / "bcryptprimitives.c"
    run(GCC, "-O1", "-shared", "-o", system / "bcryptprimitives.dll", source, "-ladvapi32")


@contextmanager
def server() -> Iterator[None]:
    """Run Wine's server during a block. At the end, stop it and every process of this prefix."""
    folder("prefix")
    stop()
    start("wineserver", "-p")
    try:
        start("wine", "wineboot")  # makes the prefix if it is empty, and starts its services
        yield
    finally:
        stop()


def start(*command: str) -> None:
    """Run a program without pipes: the services that it starts would keep them open."""
    null = subprocess.DEVNULL
    subprocess.run(
        command,
        env=WINE,
        stdin=null,
        stdout=null,
        stderr=null,
        start_new_session=True,
        timeout=CALL_SECONDS,
        check=True,
    )


def stop() -> None:
    """Stop Wine's server and all programs of this prefix."""
    subprocess.run(["wineserver", "-k"], env=WINE, timeout=CALL_SECONDS, check=False, stderr=subprocess.DEVNULL)


def test(arguments: Sequence[str]) -> int:
    """Build ripwrap's wheel, and run the tests with it."""
    wheel, programs = HOME / "ripwrap", folder("programs")
    shutil.rmtree(wheel, ignore_errors=True)
    pip("install", "--no-deps", "--target", wheel, ROOT)
    for source in sorted((ROOT / "tests" / "windows").glob("*.c")):
        run(GCC, "-O1", "-o", programs / f"{source.stem}.exe", source)
    paths = (wheel, HOME / "packages")
    env = {
        **WINE,
        "PYTHONPATH": ";".join(map(windows_path, paths)),
        "PYTHONPYCACHEPREFIX": windows_path(HOME / "compiled"),
        "RIPWRAP_WINDOWS_PROGRAMS": windows_path(programs),
        "RIPWRAP_RGS": "15.2.0",
    }
    pytest = ["-m", "pytest", "-p", "no:cacheprovider"]
    if "--main" not in arguments:
        return python([*pytest, "--confcutdir=tests/windows", *(arguments or ["tests/windows"])], env, SUITE_SECONDS)
    # The main suite takes rg from here (`tests/support/rgs.py`), and would otherwise run pip under Wine.
    rg = ROOT / ".rg" / "15.2.0" / "rg.exe"
    rg.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(HOME / "packages" / "bin" / "rg.exe", rg)
    # On Windows a timeout of pytest-timeout ends the whole run, and Wine is slow.
    options = ["--quiet", "--timeout=600", "-m", "not slow", *(one for one in arguments if one != "--main")]
    return python([*pytest, *options], env, MAIN_SUITE_SECONDS)


def windows_path(path: Path) -> str:
    r"""Return a path as programs under Wine see it: `/` is `Z:\`."""
    return "Z:" + str(path).replace("/", "\\")


def python(arguments: Sequence[str], env: dict[str, str], seconds: float) -> int:
    """Run the Python for Windows, print its output at once, and return its exit code."""
    # stdin and stdout must be pipes: with other files, this Python fails with WinError 6.
    child = subprocess.Popen(
        ["wine", HOME / "py" / "python.exe", *arguments],
        cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    stdin, stdout = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
    late, decoder = threading.Event(), codecs.getincrementaldecoder("utf-8")("replace")

    def end() -> None:
        late.set()
        stop()  # also ends other processes that hold the pipe
        child.kill()

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        stdin.close()
        while chunk := os.read(stdout.fileno(), 65536):
            sys.stdout.write(decoder.decode(chunk).replace("\r\n", "\n"))
            sys.stdout.flush()
        returncode = child.wait()
    finally:
        timer.cancel()
        child.kill()
        child.wait()
    if late.is_set():
        raise SystemExit(f"windows_tests: the tests did not end within {seconds} seconds")
    return returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
