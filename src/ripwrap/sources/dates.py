"""Dates that are passed to git, and dates that git writes."""

import re
from contextlib import suppress
from datetime import UTC, datetime

from ripwrap.errors import Hint, HintedText, SearchError
from ripwrap.sources.git_process import Git

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def check_date(since: str | None) -> str | None:
    """Check a date for `git log --since`, and return it. Return `None` if `since` is `None`.

    A date without a time, such as `2024-01-31`, is returned with the time 00:00. Other texts, such as `2 weeks ago`,
    are returned unchanged; git checks them later.
    """
    if since is None:
        return None
    if not isinstance(since, str):
        raise TypeError(f"since must be a str or None, got {type(since).__name__}")
    if not since.strip() or "\0" in since:
        raise date_error(since)
    if not _DATE.fullmatch(since.strip()):
        return since
    try:
        datetime.fromisoformat(since.strip())
    except ValueError:
        raise date_error(since) from None
    # git reads a date without a time as that day at the current time of day (approxidate), so add midnight.
    return f"{since.strip()} 00:00"


def date_error(since: str) -> ValueError:
    """Return the error for a text that is not a date, or is a date that git cannot read."""
    return ValueError(HintedText(Hint("since", kind="correct"), f" must be a date such as '2024-01-31', got {since!r}"))


def read_date(text: str) -> datetime:
    """Parse a date that git wrote. If its time zone is invalid, read the date as UTC.

    An invalid date, or a date after the year 9999, becomes the beginning of 1970; git allows both.
    """
    for known in (text, f"{text[:19]}Z"):
        with suppress(ValueError):
            return datetime.fromisoformat(known)
    return datetime.fromtimestamp(0, UTC)


def readable_date(git: Git, since: str) -> str:
    """Check that git can read a date, and return it. `git log` would read any other text as the current time."""
    try:
        git.read("config", "--type=expiry-date", f"--default={since}", "--get", "ripwrap.since")
    except SearchError as error:
        if error.returncode is None:  # git could not be started
            raise
        raise date_error(since) from None
    return since
