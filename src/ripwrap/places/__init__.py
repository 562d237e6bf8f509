"""Places of a search: where it looks, besides the files of a directory.

```python
from ripwrap import sync
from ripwrap.places import Items

notes = Items([("todo.txt", "TODO: cards"), ("done.txt", "paid")])
for match in sync.search("TODO", where=notes):
    print(match.path, match.text)
```

```text
todo.txt TODO: cards
```

A place of your own has one method, `plan()`; see `Place`. The short ways `rev=`, `inside=`, `on=`, `encoding="detect"`
and `overlay()` mean the same as `Revision`, `Inside`, `Host`, `Detected` and `Overlay`.
"""

from ripwrap._ripgrep.place import Part, Place, Plan
from ripwrap._ripgrep.query import Query
from ripwrap.places.where import (
    Detected,
    Directory,
    History,
    Host,
    Inside,
    Items,
    Overlay,
    PlacedFileOptions,
    PlacedSearchOptions,
    PlaceOptions,
    Revision,
)
from ripwrap.sources.base import Source

__all__ = [
    "Detected",
    "Directory",
    "History",
    "Host",
    "Inside",
    "Items",
    "Overlay",
    "Part",
    "Place",
    "PlaceOptions",
    "PlacedFileOptions",
    "PlacedSearchOptions",
    "Plan",
    "Query",
    "Revision",
    "Source",
]
