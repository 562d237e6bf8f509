"""Read the environment variables for finding and installing rg; each call reads them again."""

import os
import re

from ripwrap.binary.releases import BASE_URL, DEFAULT_VERSION

VARIABLES = (
    "RIPWRAP_RG",
    "RIPWRAP_CACHE_DIR",
    "RIPWRAP_OFFLINE",
    "RIPWRAP_MIRROR",
    "RIPWRAP_VERSION",
    "RIPWRAP_SHA256",
)
"""Environment variables that this package reads."""


def offline() -> bool:
    """Return True if `RIPWRAP_OFFLINE` forbids the network: if it is not empty, and not `0`, `false` or `no`."""
    return os.environ.get("RIPWRAP_OFFLINE", "").lower() not in ("", "0", "false", "no")


def mirrors() -> list[str]:
    """Return the mirrors in `RIPWRAP_MIRROR`, or GitHub if it is not set.

    With `RIPWRAP_OFFLINE`, return only the mirrors that are `file://` addresses.
    """
    # Commas separate mirrors. Split at a comma only if an address follows, because a password may contain a comma.
    named = re.split(r",(?=\s*(?:$|,|\w+:))", os.environ.get("RIPWRAP_MIRROR") or BASE_URL)
    return allowed_offline([mirror.strip() for mirror in named if mirror.strip()])


def allowed_offline(mirrors: list[str]) -> list[str]:
    """Return the given mirrors; with `RIPWRAP_OFFLINE`, only `file://` mirrors, which need no network."""
    return [mirror for mirror in mirrors if not offline() or mirror.startswith("file:")]


def version() -> str | None:
    """Return the version of rg in `RIPWRAP_VERSION`, or `None` if it is not set."""
    return os.environ.get("RIPWRAP_VERSION") or None


def version_to_install() -> str:
    """Return the version of rg in `RIPWRAP_VERSION`, or the newest version with pinned hashes."""
    return version() or DEFAULT_VERSION


def sha256() -> str | None:
    """Return the hash in `RIPWRAP_SHA256`, for an archive that the owner of a mirror made; `None` if it is not set."""
    return os.environ.get("RIPWRAP_SHA256") or None


def redact(text: str) -> str:
    """Replace credentials and queries of the addresses in a text by `***`; a query may contain a signature."""
    return re.sub(r"(://[^\s?]*)\?\S+", r"\1?***", re.sub(r"://\S*@", "://***@", text))
