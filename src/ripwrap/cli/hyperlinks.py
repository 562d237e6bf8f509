"""Hyperlinks around paths on a terminal, in the formats of `rg --hyperlink-format` (OSC 8)."""

import os
import platform
import re
from collections.abc import Callable

from ripwrap.errors import HintedText

_LINED = "{path}&line={line}&column={column}"
_FORMATS = {
    "default": "file://{path}" if os.name == "nt" else "file://{host}{path}",
    "none": "",
    "file": "file://{host}{path}",
    "grep+": "grep+://{path}:{line}",
    "kitty": "file://{host}{path}#{line}",
    "macvim": f"mvim://open?url=file://{_LINED}",
    "textmate": f"txmt://open?url=file://{_LINED}",
    **{
        name: f"{name}://file{{path}}:{{line}}:{{column}}"
        for name in ("cursor", "vscode", "vscode-insiders", "vscodium")
    },
}
"""Named formats of rg 15."""

_URL = re.compile(r"[0-9A-Za-z+.-]+:.*\{path\}.*", re.DOTALL)
_FIELD = re.compile(r"\{(\w*)\}")
_FIELDS = ("path", "line", "column", "host", "wslprefix")
_PLAIN = re.compile(rb"[^0-9A-Za-z/:._~\x80-\xff-]")


def link_format(name: str) -> str:
    """Return the URL of a format, with fields such as `{path}`; empty for `none`."""
    url = _FORMATS.get(name, name)
    unknown = [one for one in _FIELD.findall(url) if one not in _FIELDS]
    if url and (unknown or not _URL.fullmatch(url)):
        raise ValueError(
            HintedText(
                f"--hyperlink-format must be {', '.join(_FORMATS)}, or a URL with {{path}} and, if wanted, {{line}}, "
                f"{{column}}, {{host}} and {{wslprefix}}; got {name}"
            )
        )
    return url


def linker(url: str, cwd: str) -> Callable[[str, int | None, int | None, bytes], bytes]:
    """Return a function that puts a link around bytes, to a path below `cwd`, a line and a column."""
    host = platform.node() if "{host}" in url else ""
    fixed = {"host": host, "wslprefix": f"wsl$/{os.environ.get('WSL_DISTRO_NAME', '')}"}

    def link(path: str, line: int | None, column: int | None, text: bytes) -> bytes:
        full = os.fsencode(os.path.realpath(os.path.join(cwd, path)))
        if os.name == "nt":
            full = b"/" + full.replace(b"\\", b"/")
        encoded = _PLAIN.sub(lambda found: b"%%%02X" % found[0][0], full)
        values = {**fixed, "line": str(line or 1), "column": str(column or 1), "path": os.fsdecode(encoded)}
        target = os.fsencode(_FIELD.sub(lambda found: values[found[1]], url))
        return b"\x1b]8;;%b\x1b\\%b\x1b]8;;\x1b\\" % (target, text)

    return link
