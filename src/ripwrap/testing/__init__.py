r"""Helpers for tests of code that uses ripwrap.

The helpers write trees of files, replace rg by a fake or a misbehaving program, make results with defaults, and assert
that a search finds nothing.

```python
from ripwrap import sync, testing

with testing.tree({"a.py": "# TODO: one\n"}) as root:  # the real rg
    print([match.line_number for match in sync.search("TODO", cwd=root)])

with testing.fake({"a.py": "# TODO: one\n"}) as rg:  # no rg
    print([match.path for match in sync.search("TODO")], len(rg.calls))
```

```text
[1]
['a.py'] 1
```

pytest loads the fixtures `rg_tree` and `fake_rg` of `ripwrap.testing.plugin` by itself.

The modules import ripwrap's models only when they are needed, because pytest loads the plugin in every run.
"""

from ripwrap.testing.builders import assert_absent, grep_result, match, tree, write_tree
from ripwrap.testing.fakes import Behavior, FakeRg, fake, misbehaving

__all__ = ["Behavior", "FakeRg", "assert_absent", "fake", "grep_result", "match", "misbehaving", "tree", "write_tree"]
