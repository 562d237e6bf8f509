"""What the environment says about finding and installing rg; read anew each time."""

import os
import re

from ripwrap.binary.releases import BASE_URL, DEFAULT_VERSION

NAMES = ("RIPWRAP_RG", "RIPWRAP_CACHE_DIR", "RIPWRAP_OFFLINE", "RIPWRAP_MIRROR", "RIPWRAP_VERSION", "RIPWRAP_SHA256")
"""Every variable of ripwrap's."""


def offline() -> bool:
    """Whether `RIPWRAP_OFFLINE` forbids the network."""
    return os.environ.get("RIPWRAP_OFFLINE", "").lower() not in ("", "0", "false", "no")


def mirrors() -> list[str]:
    """Where to download from: `RIPWRAP_MIRROR`, a comma-separated list, or GitHub; offline only what is `file://`."""
    # A comma stands between addresses only if one follows: a password may have a comma too.
    named = re.split(r",(?=\s*(?:$|,|\w+:))", os.environ.get("RIPWRAP_MIRROR") or BASE_URL)
    return reachable([mirror.strip() for mirror in named if mirror.strip()])


def reachable(mirrors: list[str]) -> list[str]:
    """Those that `RIPWRAP_OFFLINE` does not forbid: `file://` is no network."""
    return [mirror for mirror in mirrors if not offline() or mirror.startswith("file:")]


def version() -> str | None:
    """The release that `RIPWRAP_VERSION` asks for."""
    return os.environ.get("RIPWRAP_VERSION") or None


def version_to_install() -> str:
    """That release, or the newest that is pinned."""
    return version() or DEFAULT_VERSION


def sha256() -> str | None:
    """The hash that `RIPWRAP_SHA256` names, of an archive that the mirror's owner made."""
    return os.environ.get("RIPWRAP_SHA256") or None


def redacted(text: str) -> str:
    """A text in which no address shows its credentials, nor a signature in its query."""
    return re.sub(r"(://[^\s?]*)\?\S+", r"\1?***", re.sub(r"://\S*@", "://***@", text))
