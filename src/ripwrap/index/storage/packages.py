"""tantivy, which may be missing. Then `ripwrap.index` can be imported, and an index says what it needs."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ripwrap._system.concurrency import reached_limit
from ripwrap.errors import RipwrapError

__all__ = ["tantivy"]

if TYPE_CHECKING or find_spec("tantivy"):
    try:
        import tantivy
    except ImportError as _error:  # such as a limit of memory or of open files
        _cause = reached_limit(1 << 28)
        _limit = f"the limit of {_cause} is reached; raise the limit, or end programs, and try again" if _cause else ""
        raise RipwrapError(
            f"could not load tantivy, which an index needs: {_error}; {_limit or 'install it again'}"
        ) from _error
else:
    tantivy = None
