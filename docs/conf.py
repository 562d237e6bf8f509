"""Configure Sphinx for the documentation: `python -m nox -s docs`."""

import html
import inspect
import os
import pydoc
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, Any, get_origin

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import ripwrap

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import flag_pages  # noqa: E402 - it is in `scripts`

project = "ripwrap"
author = copyright = "The ripwrap maintainers"
version = release = installed_version("ripwrap")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!ripwrap\.|_).*"),  # names of other packages: the build has no network
    (
        "py:.*",
        r"ripwrap\.(index\.models\._keep_hints|_scan\.rules\._check_regex|models\._without_envelope)",
    ),  # validators in annotations
    ("py:.*", r"ripwrap\.(_system\.overlay\.P|workspace\.tool\.AnswerT_co)"),  # type variables
    ("py:class", r"ripwrap\._ripgrep\.(protocols\.Runner|change\.Change)"),  # private; see `ripwrap.places.Place`
    ("py:meth", r"ripwrap\..*\.model_\w+"),  # methods of Pydantic's models
]

myst_heading_anchors = 3
nb_execution_mode = "off"  # `scripts/pictures.py` runs it

smartquotes_action = "qe"  # quotes and ellipses, not dashes: help texts contain flags such as `--json`
default_role = "code"  # for docstrings that help texts show; they are written in Markdown
python_maximum_signature_line_length = 88
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"exclude-members": "model_config,model_post_init"}
napoleon_use_ivar = True

html_description = (
    "The typed Python API of ripgrep: it runs rg, and gives you matches, files and trees as typed objects."
)
html_theme = "furo"
pygments_dark_style = "github-dark"  # Furo's own underlines the names of modules
html_title = f"ripwrap {version}"
html_static_path = ["pictures/style.css"]
html_css_files = ["style.css"]
html_favicon = "pictures/favicon.svg"
html_search_scorer = str(ROOT / "docs" / "pictures" / "scorer.js")
html_copy_source = False
copybutton_exclude = ".linenos, .gp"  # prompts

# Map files outside the folder that Sphinx reads to the pages that show them.
ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changes.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "VERSIONING.md": "project/versioning.md",
    "examples": "how-to/examples.md",
    "examples/notebook.ipynb": "_generated/notebook.ipynb",
}
_LINK = re.compile(r"^```.*?^```|`[^`\n]*`|(?<=\]\()(?![a-z]+:|#)[^)#\s]+", re.MULTILINE | re.DOTALL)  # not in code
_FENCE = re.compile(r"^```(\w+)$")
_ANNOTATED = re.compile(r"~?(?:typing\.)?Annotated\[str, <ripwrap[^>]*>\]")
_ROOM = re.compile(r"\bripwrap\.(?:\w+\.)*(?=[A-Z])")
NARROW = 34
"""Number of characters of code that a window of 390 pixels has room for."""
WRITTEN: dict[str, Callable[[], str]] = {
    "<!-- the help of each command -->\n": flag_pages.describe_commands,
    "<!-- a row for each flag of rg -->\n": flag_pages.describe_rg_flags,
}
"""Lines of pages that are replaced by text that a function writes."""
_DIRECTIVE = re.compile(r"^```\{.*?^```\n", re.MULTILINE | re.DOTALL)
_INCLUDE = re.compile(
    r'^```\{include\} (?P<path>\S+)\n(?::start-after: "(?P<from>.*)"\n)?(?::end-before: "(?P<to>.*)"\n)?```$',
    re.MULTILINE,
)
_FIRST = re.compile(
    r"^# .*\n+(?:<!--.*\n+)?((?!```)[\w`*[](?:.|\n(?!\n))*?\.)(?=\s)", re.MULTILINE
)  # the first sentence of a page
_SENTENCE = re.compile(r".{20,300}?[.?](?=\s|$)")
_TARGET = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def _follow(app: Sphinx, text: str, folder: Path) -> str:
    """Rewrite the links of a Markdown file, which are relative to that file, for the page that shows it."""

    def link(found: re.Match[str]) -> str:
        if found[0].startswith("`"):
            return found[0]
        target = os.path.relpath(folder / found[0], ROOT)
        shown = app.srcdir / ELSEWHERE[target] if target in ELSEWHERE else ROOT / target
        return os.path.relpath(shown, Path(app.env.doc2path(app.env.current_document.docname)).parent)

    return _LINK.sub(link, text)


def _read(app: Sphinx, page: str, content: list[str]) -> None:
    path = Path(app.env.doc2path(page))
    if path.suffix == ".md":
        content[0] = _write(_follow(app, content[0], path.parent))


def _write(text: str) -> str:
    """Return the text of a page with the parts that functions write."""
    for line, function in WRITTEN.items():
        text = text.replace(line, function()) if line in text else text
    return text


def _include(app: Sphinx, path: Path, page: str, content: list[str]) -> None:
    content[0] = _follow(app, content[0], (app.srcdir / path).resolve().parent)


def _docstring(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Convert the fences and public names of a docstring from Markdown to reStructuredText."""
    fenced = False
    for number, line in enumerate(lines):
        if fence := _FENCE.match(line):
            lines[number], fenced = f".. code-block:: {fence[1]}\n", True
        elif fenced and line == "```":
            lines[number], fenced = "", False
        elif fenced:
            lines[number] = f"    {line}"
        else:
            lines[number] = _CODE.sub(partial(_reference, name), line)
    lines[:] = "\n".join(lines).split("\n")
    if inspect.isclass(thing):  # add the attributes that a private base class documents for several classes
        for base in thing.__mro__[1:]:
            attributes = (inspect.cleandoc(base.__doc__ or "")).partition("\nAttributes:\n")[2]
            if base.__name__.startswith("_") and attributes:
                lines += ["", "Attributes:", *_CODE.sub(partial(_reference, name), attributes).split("\n")]


def _plain(text: str) -> str:
    """Remove the annotations for Pydantic from a type."""
    return _ANNOTATED.sub("str", text)


def _remove_descriptions(app: Sphinx, thing: Any, bound: bool) -> None:
    """Remove what the docstring of a function has, too: descriptions in annotations, and the list of its options."""
    function = thing.__init__ if inspect.isclass(thing) else thing
    for one in (function, getattr(function, "__wrapped__", function)):
        getattr(one, "__dict__", {}).pop("__signature__", None)
    hints = getattr(thing, "__annotations__", {})
    hints.update({name: hint.__origin__ for name, hint in hints.items() if get_origin(hint) is Annotated})


def _signature(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, arguments: str | None, gives: str | None
) -> tuple[str | None, str | None]:
    return arguments and _plain(arguments), gives and _plain(gives)


def _types(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [_ROOM.sub("", _plain(line)) if line.startswith(":vartype") else line for line in lines]


def _reference(described: str, found: re.Match[str]) -> str:
    """Return a link for code in a docstring that names a public object, or a method of the same class."""
    name = found[1].removeprefix("ripwrap.").removesuffix("()")
    if found[1].endswith("()"):  # a lowercase word without () may be an argument
        for owner in (described, described.rpartition(".")[0]):
            if inspect.isclass(thing := pydoc.locate(owner)) and hasattr(thing, name):
                return f":py:meth:`{found[1]} <{owner}.{name}>`"
    first, _, rest = name.partition(".")
    if first in ripwrap.__all__ and not rest and (found[1].endswith("()") or not first.islower()):
        return f":py:obj:`{found[1]} <ripwrap.{first}>`"
    return f"``{found[1].strip()}``"


def _public(app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.TextElement) -> nodes.Node | None:
    """Return a link to the public name of an object that is referred to by its private module."""
    room, _, name = node.get("reftarget", "").rpartition(".")
    if room and not room.startswith("ripwrap."):
        return None
    python = env.domains.python_domain
    for module in ("ripwrap", "ripwrap.binary", "ripwrap.places", "ripwrap.remote", "ripwrap.workspace", "ripwrap.mcp"):
        if node.get("refdomain") == "py" and f"{module}.{name}" in python.objects:
            return python.resolve_xref(
                env, node["refdoc"], app.builder, "obj", f"{module}.{name}", pending_xref("", **node.attributes), shown
            )
    return None


def _mark_short(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Mark code that fits on the line of a narrow window, so that style.css can keep its words whole."""
    for code in tree.findall(nodes.literal):
        if max(map(len, code.astext().split()), default=0) <= NARROW:
            code["classes"].append("short")


def _describe(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Let the first sentence of a page be its description, which search engines and previews of links show."""
    first = tree.next_node(nodes.paragraph) if tree else None
    sentence = _SENTENCE.match(" ".join(first.astext().split())) if first else None
    description = html.escape(sentence[0] if sentence else html_description)
    context["metatags"] = f'{context.get("metatags", "")}<meta name="description" content="{description}">\n'


def _pages(env: BuildEnvironment, page: str) -> Iterator[str]:
    """Yield a page and the pages below it, in the order of the tables of contents."""
    yield page
    for below in env.toctree_includes.get(page, []):
        yield from _pages(env, below)


def _markdown(app: Sphinx, page: str) -> str:
    """Return the Markdown of a page with the files that it includes; directives of Sphinx are left out."""
    path = Path(app.env.doc2path(page))

    def included(found: re.Match[str]) -> str:
        text = _follow(app, (path.parent / found["path"]).read_text(), (path.parent / found["path"]).resolve().parent)
        start, end = found["from"], found["to"]
        text = text.partition(start)[2] if start else text
        return text.partition(end)[0] if end else text

    app.env.current_document.docname = page  # links are made relative to it
    return _write(_DIRECTIVE.sub("", _INCLUDE.sub(included, path.read_text())))


def _write_for_models(app: Sphinx, error: Exception | None) -> None:
    """Write `llms.txt`, the list of all pages, and `llms-full.txt`, their text (https://llmstxt.org)."""
    if error is not None or app.builder.format != "html":
        return
    pages = list(dict.fromkeys(_pages(app.env, "index")))
    texts = {page: _markdown(app, page) for page in pages if Path(app.env.doc2path(page)).suffix == ".md"}
    lists, folder = [f"# {project}\n\n> {html_description}\n"], ""
    for page in pages:
        here = page.rpartition("/")[0].partition("/")[0]
        if here != folder and not here.startswith("_"):
            folder = here
            lists.append(f"\n## {folder.replace('-', ' ').capitalize()}\n")
        found = _FIRST.search(texts.get(page, ""))
        about = _TARGET.sub(r"\1", f": {' '.join(found[1].split())}") if found else ""
        lists.append(f"- [{app.env.titles[page].astext()}]({app.builder.get_target_uri(page)}){about}")
    Path(app.outdir, "llms.txt").write_text("\n".join(lists) + "\n")
    Path(app.outdir, "llms-full.txt").write_text("\n\n".join(texts.values()))


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("source-read", _read)
    app.connect("include-read", _include)
    app.connect("autodoc-process-docstring", _docstring, priority=400)  # before Napoleon
    app.connect("autodoc-process-docstring", _types, priority=600)  # after it
    app.connect("autodoc-before-process-signature", _remove_descriptions)
    app.connect("autodoc-process-signature", _signature)
    app.connect("missing-reference", _public)
    app.connect("doctree-resolved", _mark_short)
    app.connect("html-page-context", _describe)
    app.connect("build-finished", _write_for_models)
