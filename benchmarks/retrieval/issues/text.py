"""Texts of issues, made from tests that fail: a title, prose, code, a traceback and the reporter's environment.

What is chosen depends on the name of the broken function only, so a text is always the same.
"""

import ast
import hashlib
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

MAX_CHARS = 5_000
_MAX_FRAMES = 20
_MAX_TEST_LINES = 45

_OPENINGS = (
    "After upgrading to {name} {version} this stopped working for us.",
    "I noticed this while porting an application to {name} {version}.",
    "This used to work in the previous release and is broken in {version}.",
    "Not sure if this is intended, but it looks like a bug to me.",
    "We see this in production about once a day, and I could reduce it to the code below.",
    "I searched the existing issues and did not find anything similar.",
    "",
)
_EXPECTED = (
    "I would expect this to pass without an error.",
    "It should behave as the documentation says.",
    "No exception, and the same result as before.",
    "Expected the values to be equal.",
)
_HEADINGS = (
    ("## Description", "## Steps to reproduce", "## Expected", "## Actual", "## Environment"),
    ("**Describe the bug**", "**To Reproduce**", "**Expected behavior**", "**Actual behavior**", "**Environment**"),
    ("", "", "", "", ""),
)
_ENVIRONMENTS = (
    "- OS: {os}\n- Python: {python}\n- {name}: {version}\n- Packages: certifi 2026.1.4, idna 3.10, packaging 25.0",
    "* Python version: {python}\n* {name} version: {version}\n* Operating system: {os}",
    "```\nPlatform: {os}\nPython {python} (main, GCC 12.2.0)\n{name}=={version}\nnumpy==2.1.0\nrequests==2.32.3\n```",
)
_SYSTEMS = ("Ubuntu 24.04", "macOS 15.1 (arm64)", "Windows 11", "Debian 12", "Fedora 41")
_PYTHONS = ("3.12.1", "3.11.9", "3.13.0")
_LIBRARY, _SITE = "/usr/lib/python3.12", "/opt/venv/lib/python3.12/site-packages"
_GUNICORN = f"{_SITE}/gunicorn/workers/sync.py"

_DIGEST = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[a-f]*[0-9])(?=[0-9]*[a-f])(?:0x)?[0-9a-f]{8,})"
    r"(?![0-9A-Za-z])|0x[0-9a-f]{6,}"
)

Frame = Sequence[Any]
"""Path of a file, number of a line, name of a function, and text of the line."""

_APPLICATIONS: tuple[tuple[Frame, ...], ...] = (
    (("/home/user/app/main.py", 31, "<module>", "main()"), ("/home/user/app/main.py", 24, "main", "run(load())")),
    (
        (f"{_LIBRARY}/runpy.py", 198, "_run_module_as_main", "return _run_code(code, main_globals, None,"),
        (f"{_LIBRARY}/runpy.py", 88, "_run_code", "exec(code, run_globals)"),
        ("/srv/service/worker.py", 112, "<module>", "sys.exit(start())"),
        ("/srv/service/worker.py", 97, "start", "handle(job)"),
    ),
    (("/home/user/repro.py", 12, "<module>", "reproduce()"),),
    (
        (_GUNICORN, 134, "handle", "self.handle_request(listener, req, client, addr)"),
        (_GUNICORN, 177, "handle_request", "respiter = self.wsgi(environ, resp.start_response)"),
        ("/srv/web/views.py", 58, "show", "return render(request)"),
    ),
)

T = TypeVar("T")


@dataclass(frozen=True)
class Failure:
    """Test that fails because a function is broken.

    Attributes:
        package: Name of the package.
        version: Its version.
        root: Folder in which the test ran.
        path: File of the function, relative to the folder.
        name: Qualified name of the function.
        test_file: File of the test, relative to the folder.
        test: Test.
        imports: Imports of the module of the test.
        code: Text of the statements of the test.
        raised: Type, qualified name, message and frames of the exception, and the parameters of the test.
    """

    package: str
    version: str
    root: str
    path: str
    name: str
    test_file: str
    test: ast.FunctionDef | ast.AsyncFunctionDef
    imports: Sequence[ast.Import | ast.ImportFrom]
    code: str
    raised: Mapping[str, Any]

    @property
    def in_traceback(self) -> bool:
        """True if the traceback has the file of the function."""
        return any(file == f"{self.root}/{self.path}" for file, *_ in self.raised["frames"])

    def pick(self, purpose: str, choices: Sequence[T]) -> T:
        """Return one of the choices, always the same for a function and a purpose."""
        digest = hashlib.sha256(f"{self.path} {self.name} {purpose}".encode()).digest()
        return choices[int.from_bytes(digest) % len(choices)]


def text_of(failure: Failure) -> str:
    """Return the text of an issue about a failure."""
    wrong_result = failure.raised["type"] == "AssertionError"
    facts = {
        "name": failure.package,
        "version": failure.version,
        "os": failure.pick("system", _SYSTEMS),
        "python": failure.pick("python", _PYTHONS),
    }
    description, reproduce, expected, actual, environment = failure.pick("style", _HEADINGS)
    called = failure.pick("call", _calls(failure.test) or [_topic(failure)])
    prose = (
        failure.pick("opening", _OPENINGS).format(**facts),
        " ".join((ast.get_docstring(failure.test) or "").split("\n\n")[0].split()),
        failure.pick("which", (f"It happens with `{called}`.", "")),
    )
    has_frames = bool(_frames_below(failure))
    parts = (
        _title(failure, called),
        description,
        " ".join(filter(None, prose)),
        reproduce,
        f"```python\n{_code(failure)}\n```",
        expected,
        failure.pick("expected", _EXPECTED),
        actual,
        f"```\n{_tidy(failure.raised['message'][:700], failure.root)}\n```" if wrong_result else "",
        f"```pytb\n{_traceback(failure)}\n```" if has_frames or not wrong_result else "",
        environment,
        failure.pick("environment", _ENVIRONMENTS).format(**facts),
    )
    return "\n\n".join(filter(None, parts))[:MAX_CHARS]


def _title(failure: Failure, called: str) -> str:
    topic, kind = _topic(failure), failure.raised["type"]
    error = _tidy(failure.raised["message"].split("\n")[0], failure.root)[:90]
    if kind == "AssertionError":
        titles = (
            f"Wrong result of {called}(): {topic}",
            f"{topic.capitalize()} does not work as expected",
            f"[Bug] {topic}",
            f"`{called}` broken for {topic} in {failure.version}",
        )
    else:
        titles = (
            f"{kind}: {error}",
            f"{kind} in {topic}",
            f"{called}() raises {kind}",
            f"{topic.capitalize()} fails with {kind}: {error}",
        )
    return failure.pick("title", titles)


def _topic(failure: Failure) -> str:
    """Return the name of the test as words."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", failure.test.name.removeprefix("test"))
    return " ".join(filter(None, name.lower().split("_")))


def _calls(test: ast.AST) -> list[str]:
    """Return the names of the functions that a test calls, without assertions."""
    names = [ast.unparse(node.func) for node in ast.walk(test) if isinstance(node, ast.Call)]
    return [name for name in names if re.fullmatch(r"(?!self\.assert|assert|pytest)[A-Za-z_][\w.]{2,40}", name)]


def _code(failure: Failure) -> str:
    """Return the code of the test with the imports that it uses and the values of its parameters."""
    body = "\n".join(textwrap.dedent(failure.code).split("\n")[:_MAX_TEST_LINES])
    used = set(re.findall(r"\w+", body))
    imports = [
        ast.unparse(one)
        for one in failure.imports
        if any((alias.asname or alias.name.split(".")[0]) in used for alias in one.names)
    ]
    shown = [one for one in imports if not re.match(r"(?:from|import) (?:\.|pytest|unittest|tests?\b)", one)]
    values = [f"{name} = {value}" for name, value in failure.raised["parameters"].items()]
    code = "\n".join([*shown, *([""] if shown else []), *values, body]).strip()
    return _tidy(re.sub(r"\bself\.assert", "assert", code), failure.root)


def _frames_below(failure: Failure) -> list[Frame]:
    """Return the frames below the test."""
    frames = list(failure.raised["frames"])
    of_test = [number for number, one in enumerate(frames) if one[0] == f"{failure.root}/{failure.test_file}"]
    return frames[of_test[0] + 1 :] if of_test else [one for one in frames if "/_pytest/" not in one[0]]


def _traceback(failure: Failure) -> str:
    """Return the traceback, in which the frames of an application stand for those of pytest."""
    below = _frames_below(failure)
    of_test = [one for one in failure.raised["frames"] if one[0] == f"{failure.root}/{failure.test_file}"][:1]
    script = failure.pick("script", ("repro.py", "example.py", "bug.py"))
    calls = [(f"/home/user/{script}", line % 40 + 3, "reproduce", text) for _, line, _, text in of_test]
    frames = [*failure.pick("application", _APPLICATIONS), *calls, *below]
    left_out = frames[5:-_MAX_FRAMES] if len(frames) > _MAX_FRAMES + 5 else []
    rows = ["Traceback (most recent call last):"]
    for number, (file, line, name, text) in enumerate(frames):
        if not left_out or not 5 <= number < 5 + len(left_out):
            rows += [f'  File "{_installed(file, failure.root)}", line {line}, in {name}']
            rows += [f"    {text}"] if text else []
        elif number == 5:
            rows.append("  ...")
    return "\n".join([*rows, f"{failure.raised['exception']}: {_tidy(failure.raised['message'][:400], failure.root)}"])


def _installed(file: str, root: str) -> str:
    """Return the path that a file has on the reporter's machine."""
    if file.startswith(root + "/"):
        return f"{_SITE}/{re.sub('^(?:src|lib)/', '', file[len(root) + 1 :])}"
    return re.sub(
        r"^.*/lib/python3\.\d+/site-packages", _SITE, re.sub(r"^.*/lib/python3\.\d+/(?!site)", f"{_LIBRARY}/", file)
    )


def _tidy(text: str, root: str) -> str:
    """Replace paths, addresses and digests, which differ between runs."""
    text = re.sub(r"/[\w./-]*pytest-of-\w+/pytest-\d+/", "/tmp/work/", text.replace(root, "/home/user/app"))  # noqa: S108
    return _DIGEST.sub(lambda found: f"{'0x' * found[0].startswith('0x')}7f3a5c0e1d90", text)
