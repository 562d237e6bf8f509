"""A query that has the name of a file finds the file: `rank()`, `Index.search()`, `codebase_search` and `Repositories`.

The trees have other files that say the name more often than the file itself does.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ripwrap import sync
from ripwrap._ranking import document
from ripwrap.binary import RgBinary
from support.paths import slashed

Plant = Callable[..., Path]

CHATTER = "{0} here, {0} there, and {0} again.\n" * 5
WEB = {
    "package.json": '{"scripts": {}}\n',
    "examples/shop/package.json": '{"name": "package.json of the shop"}\n',
    "Makefile": "all:\n\tcc main.c\n",
    "src/config.py": "DEBUG = True\n",
    "src/config/loader.py": "def load_config(config): return config\n",
    "src/read_config.py": CHATTER.format("config"),
    "src/build.py": CHATTER.format("the Makefile and package.json, where config is"),
    "docs/guide.md": CHATTER.format("Makefile package.json config"),
    "LICENSE": "Do what you want.\n",
    "README.md": CHATTER.format("shop"),
    "src/license_check.py": CHATTER.format("README LICENSE license"),
    "docker-compose.yml": "services: {}\n",
    "src/compose.py": CHATTER.format("docker compose"),
    "app/[slug]/page.tsx": "export default 1\n",
    "src/__init__.py": "",
    "src/py.typed": "\n\n",
    "src/typed.py": CHATTER.format("py typed"),
    "notes/Release Notes.txt": "soon\n",
    "src/notes.py": CHATTER.format("release notes"),
}
FOUND = {
    "Makefile": "Makefile",
    "makefile": "Makefile",
    "where is the Makefile?": "Makefile",
    "how does the makefile build main": "Makefile",
    "package.json": "package.json",
    "where is package.json": "package.json",
    "what does `package.json` declare for scripts": "package.json",
    "PACKAGE.JSON": "package.json",
    "shop/package.json": "examples/shop/package.json",
    "config": "src/config.py",
    "where is config": "src/config.py",
    "src/config": "src/config.py",
    "./src/config.py:12": "src/config.py",
    "LICENSE": "LICENSE",
    "open the license file": "LICENSE",
    "README": "README.md",
    "what does the README say": "README.md",
    "docker-compose": "docker-compose.yml",
    "app/[slug]/page.tsx": "app/[slug]/page.tsx",
    "__init__.py": "src/__init__.py",
    "py.typed": "src/py.typed",
    "Release Notes.txt": "notes/Release Notes.txt",
    "release notes": "notes/Release Notes.txt",
}
LANGUAGES = {
    "README.md": "# Highlighter\n\nIt knows C, C++, C#, F# and Java.\nC++ and C# are popular. Is C# like C++?\n",
    "src/c.js": "export default (hljs) => ({ name: 'C', aliases: ['h'] })\n",
    "src/cpp.js": "export default (hljs) => ({ name: 'C++', aliases: ['cc'] })\n",
    "src/csharp.js": "export default (hljs) => ({ name: 'C#', aliases: ['cs'] })\n",
    "src/fsharp.js": "export default (hljs) => 1\n",
    "src/java.js": "export default (hljs) => ({ name: 'Java' })\n",
}
SIGNED = {"C++": "src/cpp.js", "c++": "src/cpp.js", "C#": "src/csharp.js", "F#": "src/fsharp.js", "C": "src/c.js"}
TEMPLATES = {"C++.gitignore": "*.o\n", "C.gitignore": "*.a\n", "C#.txt": "*.dll\n", "README.md": "C++ C# C\n" * 9}
LITERAL = {"C++": "C++.gitignore", "where is C++.gitignore": "C++.gitignore", "C#": "C#.txt", "C": "C.gitignore"}
UNICODE = {
    "src/pr\u00fcfung.py": "x = 1\n",
    "src/b.py": CHATTER.format("pru\u0308fung pr\u00fcfung"),
    "\u8a2d\u5b9a.json": "{}\n",
}
SPELLED = {
    "Pr\u00fcfung": "src/pr\u00fcfung.py",
    "pru\u0308fung.py": "src/pr\u00fcfung.py",
    "\u8a2d\u5b9a.json": "\u8a2d\u5b9a.json",
    "\u8a2d\u5b9a": "\u8a2d\u5b9a.json",
}


def _first_of_all(folder: Path, query: str, rg: RgBinary, index: sync.Index, tools: sync.Workspace) -> list[str]:
    repositories = sync.Repositories(folder, rg=rg.path)
    found = [
        sync.rank(query, cwd=folder, rg=rg.path)[:1],
        index.search(query)[:1],
        repositories.rank(query).chunks[:1],
    ]
    places = tools.codebase_search_result(query).places[:1]
    return [slashed(one.path) for some in found for one in some] + [place.file for place in places]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tree", "wanted"),
    [(WEB, FOUND), (LANGUAGES, SIGNED), (TEMPLATES, LITERAL), (UNICODE, SPELLED)],
    ids=["web", "languages", "templates", "unicode"],
)
def test_query_with_the_name_of_a_file_finds_the_file_first(
    plant: Plant, rg: RgBinary, tree: Mapping[str, str], wanted: Mapping[str, str], tmp_path: Path
) -> None:
    folder = plant(tree)
    index = sync.Index(folder, location=tmp_path / "index", rg=rg.path)
    with sync.Workspace(folder, rg=rg.path, index=False) as tools:
        first = {query: _first_of_all(folder, query, rg, index, tools) for query in wanted}
    assert first == {query: [path] * 4 for query, path in wanted.items()}
    index.close()


@pytest.mark.parametrize("names", [" ".join(f"no{number}.py" for number in range(1_000)), "n" * 10_000 + ".py"])
def test_queries_with_many_or_long_names_are_answered(plant: Plant, rg: RgBinary, tmp_path: Path, names: str) -> None:
    """SQLite limits the patterns and expressions that find names in an index."""
    folder = plant(WEB)
    with (
        sync.Index(folder, location=tmp_path / "index", rg=rg.path) as index,
        sync.Workspace(folder, rg=rg.path, index=False) as tools,
    ):
        assert _first_of_all(folder, f"package.json {names}", rg, index, tools) == ["package.json"] * 4


def test_index_of_windows_guesses_definitions_and_starts_no_parser(
    plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_parser() -> None:
        pytest.fail("a parser was asked")

    monkeypatch.setattr(document, "shared_reader", no_parser)
    body = "".join(f"    step_{number} = send(rows, {number})\n" for number in range(40))
    root = plant({"a.py": f"def load(rows):\n{body}\n# all of them\ndef send(rows, number):\n    return rows\n"})
    with sync.Index(root, location=tmp_path / "index", chunker="windows") as index:
        (first, *_) = index.search("where is send defined")
        (described, *_) = index.search("load the rows")
    assert (first.start_line, first.end_line, first.symbol) == (43, 45, "send") and 'defines "send"' in first.reasons
    assert (described.start_line, described.symbol) == (1, "load")
