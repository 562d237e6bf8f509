"""Table of languages: it maps a file name, an extension or a `#!` line to the name of a language."""

import re
from pathlib import PurePath

_EXTENSIONS_OF = {
    "arduino": "ino",
    "bash": "sh bash zsh ksh",
    "bats": "bats",
    "c": "c",
    "c header": "h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp inl tpp cu cuh",
    "csharp": "cs csx",
    "cython": "pyx",
    "dart": "dart",
    "elixir": "ex exs",
    "go": "go",
    "haskell": "hs",
    "html": "html htm xhtml",
    "ini": "ini cfg conf properties service desktop",
    "java": "java",
    "javascript": "js jsx mjs cjs node",
    "json": "json jsonc json5 webmanifest code-workspace",
    "julia": "jl",
    "kotlin": "kt kts",
    "lua": "lua",
    "make": "mk mak make",
    "markdown": "md markdown mdx mdown",
    "objective-c": "m mm",
    "perl": "pl pm t perl",
    "php": "php phtml php5 php7",
    "php include": "inc",
    "plain data": "jsonl ndjson geojson txt text log csv tsv lock xml svg map ipynb diff patch po pot",
    "python": "py pyi pyw python",
    "quarto": "qmd",
    "r": "r",
    "rst": "rst rest",
    "ruby": "rb rake gemspec ru ruby",
    "rust": "rs",
    "scala": "scala sc sbt",
    "sql": "sql ddl psql pgsql",
    "starlark": "bzl",
    "swift": "swift",
    "toml": "toml",
    "tsx": "tsx",
    "typescript": "ts mts cts",
    "yaml": "yaml yml",
    "zig": "zig",
}
_FILE_NAMES_OF = {
    "bash": ".bashrc .bash_profile .profile .zshrc",
    "ini": ".editorconfig .gitconfig",
    "make": "makefile gnumakefile",
    "ruby": "rakefile gemfile vagrantfile",
    "toml": "cargo.lock poetry.lock uv.lock pipfile",
    "yaml": ".clang-format",
}
_INTERPRETERS = {
    "python": "python",
    "bash": "bash",
    "sh": "bash",
    "ruby": "ruby",
    "perl": "perl",
    "node": "javascript",
    "lua": "lua",
    "php": "php",
}
_MAX_SHEBANG_CHARS = 200

LANGUAGES = frozenset(_EXTENSIONS_OF)
"""Names of all languages."""

_BY_EXTENSION = {extension: name for name, extensions in _EXTENSIONS_OF.items() for extension in extensions.split()}
_BY_FILE_NAME = {file_name: name for name, file_names in _FILE_NAMES_OF.items() for file_name in file_names.split()}
_INTERPRETER = re.compile("|".join(_INTERPRETERS))


def language_name(path: str, first_line: str) -> str | None:
    """Return the name of a file's language by its name, its extension, or its `#!` line; None if it is unknown."""
    file_name = PurePath(path.replace("\\", "/")).name.lower()
    extension = file_name.rpartition(".")[2] if "." in file_name[1:] else ""
    name = _BY_FILE_NAME.get(file_name) or _BY_EXTENSION.get(extension)
    if name is None and not extension and first_line.startswith("#!"):
        interpreters = _INTERPRETER.findall(first_line[:_MAX_SHEBANG_CHARS].partition("\n")[0])
        return _INTERPRETERS[interpreters[-1]] if interpreters else None
    return name
