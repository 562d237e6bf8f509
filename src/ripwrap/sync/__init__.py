"""Blocking twins of ripwrap's operations, with the same names, for code that does not await.

Each function takes the arguments of its async twin. Most also take a `timeout` in seconds, because a blocking call
cannot be cancelled. After that time rg is stopped, and `TimeoutError` is raised; a generator first yields the items
that rg has found. The time of a generator begins when its first item is requested. The time does not include the wait
for other rg processes; see `ripwrap.limit_processes()`. If you leave a generator early, its rg ends when the generator
is closed or garbage collected; use `contextlib.closing` to close it.

```python
from ripwrap import sync

for match in sync.search("TODO", cwd="demo", glob="*.py", sort="path", timeout=10):
    print(match.path, match.spans())
```

```text
shop/cart.py ((6, 10),)
shop/till.py ((20, 24),)
```

A function is loaded when it is first used.
"""

import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ripwrap.index.blocking import Index
    from ripwrap.repositories.blocking import Repositories
    from ripwrap.sync._columns import search_columns
    from ripwrap.sync._combine import files_matching
    from ripwrap.sync._counts import count, count_matches, file_types, files_with_matches, files_without_match
    from ripwrap.sync._coverage import coverage, why
    from ripwrap.sync._expand import expand
    from ripwrap.sync._files import files
    from ripwrap.sync._grep import grep
    from ripwrap.sync._history import search_history
    from ripwrap.sync._outline import outline
    from ripwrap.sync._rank import rank
    from ripwrap.sync._references import references
    from ripwrap.sync._replace import ReplacePlan, replace, undo
    from ripwrap.sync._resolver import install, resolve
    from ripwrap.sync._scan import scan
    from ripwrap.sync._search import search, search_messages
    from ripwrap.sync._streams import grep_in, search_in
    from ripwrap.sync._structure import replace_code, search_code
    from ripwrap.sync._tree import tree, tree_text
    from ripwrap.sync._watch import watch
    from ripwrap.workspace.blocking import Workspace

# fmt: off
__all__ = [
    "Index", "ReplacePlan", "Repositories", "Workspace", "count", "count_matches", "coverage", "expand", "file_types",
    "files", "files_matching", "files_with_matches", "files_without_match", "grep", "grep_in", "install", "outline",
    "rank", "references", "replace", "replace_code", "resolve", "scan", "search", "search_code", "search_columns",
    "search_history", "search_in", "search_messages", "tree", "tree_text", "undo", "watch", "why",
]
# fmt: on

_NAMES = {
    "index.blocking": "Index",
    "repositories.blocking": "Repositories",
    "workspace.blocking": "Workspace",
    "sync._search": "search search_messages",
    "sync._columns": "search_columns",
    "sync._grep": "grep",
    "sync._scan": "scan",
    "sync._combine": "files_matching",
    "sync._streams": "search_in grep_in",
    "sync._history": "search_history",
    "sync._counts": "files_with_matches files_without_match count count_matches file_types",
    "sync._expand": "expand",
    "sync._outline": "outline",
    "sync._coverage": "coverage why",
    "sync._files": "files",
    "sync._rank": "rank",
    "sync._references": "references",
    "sync._replace": "ReplacePlan replace undo",
    "sync._structure": "search_code replace_code",
    "sync._tree": "tree tree_text",
    "sync._watch": "watch",
    "sync._resolver": "resolve install",
}
"""Map a module to its public names."""

_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # with `__getattr__()`, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name in _MODULE_OF:
            module = import_module(f"ripwrap.{_MODULE_OF[name]}")
            return globals().setdefault(name, getattr(module, name))
        if name == "render_tree":
            from ripwrap._operations.tree import render_tree

            message = "ripwrap.sync.render_tree is deprecated; use ripwrap.Tree(entries=…)"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return render_tree
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])

    def __dir__() -> list[str]:
        return sorted(__all__)
