"""Check the site that Sphinx built: `python scripts/check_site.py SITE SCREENSHOTS`; exit with 1 if there is a fault.

Faults are links to missing pages or anchors of the site, public names that the reference lacks, pages that `llms.txt`
lacks, pages without an icon or a description, and Python or Markdown source in the text of a page. If Chromium is
installed, each page is also opened in a wide and a narrow window. Then pages that are wider than the window, pictures
that do not load, copied prompts, flags on two lines, and a table of contents or a part of a line of code that is not
visible in the wide window are faults too, and so is a search whose first result is not the expected page.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Page, sync_playwright
from sphinx.util.inventory import InventoryFile

import ripwrap
from ripwrap import binary, index, mcp, sync, workspace

WIDTHS = {1280: 800, 390: 844}
SHOWN = {
    "front": "index.html",
    "tutorial": "tutorial.html",
    "recipes": "how-to/recipes.html",
    "cheat-sheet": "migration/from-rg.html",
    "commands": "reference/command-line.html",
    "reference": "reference/api/operations.html",
}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# clipboard.js, which the copy buttons use, selects the text in a new element and executes this command.
_COPIED = """() => {
    const copied = [];
    document.execCommand = () => copied.push(document.activeElement.value);
    document.querySelectorAll("button.copybtn").forEach(button => button.click());
    delete document.execCommand;
    return copied;
}"""
FOUND = {
    "gz": "how-to/recipes.html#how-do-i-search-in-a-gz-file",
    "hidden files": "how-to/recipes.html#how-do-i-search-hidden-files",
    "blame": "how-to/recipes.html#how-do-i-find-who-wrote-a-match",
    "cancel": "how-to/",
    "pandas": "how-to/",
    "timeout": "how-to/timeouts.html",
    "grep": "reference/api/operations.html#ripwrap.grep",
    "search_columns": "reference/api/operations.html#ripwrap.search_columns",
    # words that no page has, or not together
    "follow symlinks": "reference/options.html",
    "regex lookahead pcre2": "reference/options.html",
    "config file .ripgreprc": "reference/options.html",
    "offline install": "how-to/air-gapped.html",
    "test without rg": "how-to/tests.html#without-rg",
    "ignore case": "reference/options.html",
    "only file names": "how-to/collect.html",
    "ssh": "how-to/remote.html",
    "who calls a function": "how-to/references.html",
    # docs/pictures/scorer.js was written without these
    "alpine container image": "how-to/docker.html",
    "claude code": "how-to/mcp.html",
    "csv export": "how-to/tables.html#csv",
    "embeddings": "how-to/code-index.html#embeddings",
    "exit codes": "reference/command-line.html",
    "gitignore": "how-to/recipes.html#how-do-i-search-files-that-gitignore-ignores",
    "jupyter": "how-to/notebooks.html",
    "kill rg when task is cancelled": "how-to/timeouts.html#cancelled-tasks",
    "latin1 encoding": "explanation/encodings.html",
    "parquet": "how-to/data-frames.html",
    "pydantic ai": "how-to/agent-frameworks.html#pydantic-ai",
    "pyinstaller": "how-to/frozen.html",
    "secrets in git history": "how-to/scan.html#versions-in-a-git-history",
    "sha256 checksum": "how-to/verify.html",
    "undo replacement": "how-to/replace.html",
    "zip archive": "how-to/items.html#archives-and-compressed-files",
}
"""Beginning of the address of the first result of a search of the site; how-tos are first (docs/pictures/scorer.js)."""
_HIDDEN_CONTENTS = "document.querySelector('.toc-tree li li')?.getBoundingClientRect().right > innerWidth"
"""True if the page has sections, but a table of them only outside of the window."""
_BROKEN = """() => [...document.querySelectorAll("code span.pre")]
    .filter(code => /^--[a-z0-9-]+$/.test(code.textContent) && code.checkVisibility())
    .filter(code => code.getBoundingClientRect().height > 2.2 * parseFloat(getComputedStyle(code).fontSize))
    .map(code => code.textContent)"""
"""Flags that stand on two lines."""
_CUT = """() => [...document.querySelectorAll(".highlight pre")]
    .filter(code => code.scrollWidth > code.clientWidth)
    .map(code => code.innerText.split("\\n").reduce((one, other) => other.length > one.length ? other : one))"""
"""Longest lines of blocks of code that are wider than their column."""
_INSIDES = re.compile(r"Annotated\[|object at 0x|```")


class _Parts(HTMLParser):
    """Collect the links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, _: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name == "id":
                self.places.add(value)
            elif value and name in ("href", "src"):
                self.links.append(value)


def broken_links(site: Path) -> Iterator[str]:
    """Yield links to files or anchors that do not exist."""
    pages = {page: _Parts(page.read_text()) for page in site.rglob("*.html")}
    for page, parts in pages.items():
        for link in parts.links:
            target = urlsplit(link)
            if target.scheme or target.netloc:
                continue
            there = (page.parent / unquote(target.path)).resolve() if target.path else page
            if not there.is_file():
                yield f"{page.relative_to(site)}: {link} has no target"
            elif target.fragment and there in pages and unquote(target.fragment) not in pages[there].places:
                yield f"{page.relative_to(site)}: {link} has no such anchor on its page"


def missing_names(site: Path) -> Iterator[str]:
    """Yield public names that the reference does not describe."""
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    described = {name for kind in inventory.data if kind.startswith("py:") for name in inventory.data[kind]}
    public = {
        f"{module.__name__}.{name}" for module in (ripwrap, binary, index, mcp, workspace) for name in module.__all__
    }
    public -= {f"ripwrap.{alias}.{name}" for alias in ("binary", "workspace") for name in ripwrap.__all__}
    public |= {f"ripwrap.sync.{name}" for name in sync.__all__}
    for name in sorted(public - described):
        yield f"{name} is public, but not in the reference"


def unlisted(site: Path) -> Iterator[str]:
    """Yield pages that `llms.txt` does not list, and those that it lists and that do not exist."""
    made = {page.relative_to(site).as_posix() for page in site.rglob("*.html")} - {
        *("genindex.html", "py-modindex.html", "search.html")
    }
    for page in sorted(made ^ set(re.findall(r"^- \[.*?\]\((\S+)\)", (site / "llms.txt").read_text(), re.MULTILINE))):
        yield f"{page} is not both a page and in llms.txt"


def insides(site: Path) -> Iterator[str]:
    """Yield Python or Markdown source that is visible in the text of a page."""
    for page in site.rglob("*.html"):
        for found in _INSIDES.finditer(page.read_text()):
            yield f"{page.relative_to(site)} has {found[0]!r} in it"


def undescribed(site: Path) -> Iterator[str]:
    """Yield pages without an icon or a description."""
    for page in site.rglob("*.html"):
        for mark in ('icon" href="', '<meta name="description" content="'):
            if mark not in page.read_text():
                yield f"{page.relative_to(site)} lacks {mark}"


def misplaced(site: Path, page: Page) -> Iterator[str]:
    """Yield searches of the site that have an unexpected first result."""
    for query, expected in FOUND.items():
        page.goto(f"{(site / 'search.html').as_uri()}?q={query}")
        page.wait_for_function("document.querySelector('#search-results .search-summary')?.innerText")
        results = page.locator("#search-results li a")
        first = (results.first.get_attribute("href") if results.count() else None) or "nothing"
        if not first.startswith(expected):
            yield f"the search for {query!r} finds {first} first, not {expected}"


def wrong_in(page: Page) -> Iterator[str]:
    """Yield visible faults of the open page."""
    for image in page.locator("img").all():
        if not image.evaluate("image => image.decode().then(() => image.naturalWidth > 0, () => false)"):
            yield f"does not show {image.get_attribute('src')}"
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wide > 0:
        yield f"is {wide} pixels wider than its window"
    if page.evaluate("innerWidth") == max(WIDTHS):
        if page.evaluate(_HIDDEN_CONTENTS):
            yield "does not show its table of contents"
        for line in page.evaluate(_CUT):
            yield f"cuts the line of code {line!r}"
    for flag in page.evaluate(_BROKEN):
        yield f"breaks a line within {flag}"
    for copied in page.evaluate(_COPIED):
        if re.search(r"^(\$|>>>|\.\.\.) ", copied, re.MULTILINE):
            yield f"has a button that copies a prompt: {copied.splitlines()[0]!r}"


def seen(site: Path, screenshots: Path, browser: str) -> Iterator[str]:
    """Yield the faults that show in a browser, for each page and width, and store screenshots of six pages."""
    screenshots.mkdir(parents=True, exist_ok=True)
    errors: list[str] = []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page()
        page.set_default_timeout(120_000)  # in milliseconds; the machine may be busy
        page.on("pageerror", lambda error: errors.append(f"fails with {error}"))
        names = {site / shown: name for name, shown in SHOWN.items()}
        for path in sorted(site.rglob("*.html")):
            page.goto(path.as_uri())
            for width, height in WIDTHS.items():
                page.set_viewport_size({"width": width, "height": height})
                for wrong in (*wrong_in(page), *errors):
                    yield f"{path.relative_to(site)} at {width} pixels {wrong}"
                errors.clear()
                for scheme in SCHEMES if path in names else ():
                    page.emulate_media(color_scheme=scheme)
                    page.screenshot(path=screenshots / f"{names[path]}-{width}-{scheme}.png")
        yield from misplaced(site, page)
        chromium.close()


def main(site: Path, screenshots: Path) -> int:
    """Print all faults, and return the exit code."""
    wrong = [*broken_links(site), *missing_names(site), *unlisted(site), *undescribed(site), *insides(site)]
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser:
        wrong += seen(site, screenshots, browser)
        print(f"screenshots: {screenshots}")
    else:
        print(f"pages not checked in a browser: none of {', '.join(BROWSERS)} is installed", file=sys.stderr)
        if os.environ.get("RIPWRAP_ALL_BROWSERS"):
            wrong.append("RIPWRAP_ALL_BROWSERS is set, so a browser must be installed")
    print("\n".join(wrong) or f"{len(list(site.rglob('*.html')))} pages: no fault")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2])))
