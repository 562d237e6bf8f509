"""Tool `find_references`: pages, filters, denied files, masked secrets and limits."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from _operations.test_revisions import git
from ripwrap import AccessDeniedError, sync
from ripwrap.binary import RgBinary
from ripwrap.workspace import FindReferencesResult, close_names
from ripwrap.workspace.find_references import plain_symbol
from support.paths import slashed
from support.tools import APIS, Asked

Plant = Callable[..., Path]

SHOP = {
    "shop/till.py": "def pay(amount):\n    return amount\n",
    "shop/cart.py": """\
from shop.till import pay


class Cart:
    def total(self):
        return pay(1)  # pay


NAME = "pay"
""",
    "shop/other.js": "pay();\n",
}
ANSWER = """\
Definitions:
  shop/till.py:1: def pay(amount):  [to line 2]

Imports:
  shop/cart.py:1: from shop.till import pay

Calls:
  shop/cart.py:6: return pay(1)  # pay  [in Cart.total]
  shop/other.js:1: pay();  [low confidence]

Mentions:
  shop/cart.py:6: return pay(1)  # pay  [in Cart.total; comment]
  shop/cart.py:9: NAME = "pay"  [string]

(1 definition and 5 uses in 5 lines of 3 files.)"""


@pytest.mark.parametrize("api", APIS)
def test_places_are_grouped_by_kind_and_marked_if_in_doubt(api: str, plant: Plant) -> None:
    asked = Asked(api, plant(SHOP))
    assert slashed(asked.find_references("pay")) == ANSWER


@pytest.mark.parametrize("name", ["references", "find_usages", "Find_Symbol", "list_code_usages"])
def test_other_names_of_the_tool_and_its_arguments_are_accepted(plant: Plant, name: str) -> None:
    ws = sync.Workspace(plant(SHOP))
    assert slashed(ws.call(name, {"name": "pay", "glob": "*.js", "limit": "2"})) == (
        "Definitions:\n  shop/till.py:1: def pay(amount):  [to line 2]\n\n"
        "Calls:\n  shop/other.js:1: pay();  [low confidence]\n\n"
        "(1 definition and 1 use in 2 lines of 2 files.)"
    )


def test_pages_go_through_all_places_once(plant: Plant) -> None:
    ws = sync.Workspace(plant(SHOP))
    seen: list[tuple[str, int, str]] = []
    offset: int | None = 0
    while offset is not None:
        page = ws.find_references_result("pay", limit=2, offset=offset)
        assert len(page.references) == 2 and page.total_references == 6
        seen += [(one.path, one.line, one.kind) for one in page.references]
        offset = page.next_offset
        assert FindReferencesResult.model_validate_json(page.model_dump_json()) == page
    assert len(seen) == len(set(seen)) == 6
    assert [one.confidence for one in ws.find_references_result("pay").references] == sorted(
        (one.confidence for one in ws.find_references_result("pay").references), key=["high", "medium", "low"].index
    )


def test_files_are_chosen_by_path_glob_type_and_visibility(plant: Plant) -> None:
    files = {**SHOP, ".hidden.py": "pay()\n", "build/a.py": "pay()\n", ".gitignore": "build/\n"}
    ws = sync.Workspace(plant({**files, ".git/HEAD": "ref: refs/heads/main\n"}))

    def paths(**options: str | bool) -> set[str]:
        found = ws.call_result("find_references", {"name": "pay", **options})
        assert isinstance(found, FindReferencesResult)
        return {slashed(one.path) for one in found.references}

    assert paths() == set(SHOP)
    assert paths(path="shop/till.py") == {"shop/till.py"}
    assert paths(file_pattern="!*.py") == {"shop/other.js", "shop/till.py"}
    assert paths(file_type="js") == {"shop/other.js", "shop/till.py"}
    assert paths(include_hidden=True) == {*SHOP, ".hidden.py"}
    assert paths(include_ignored=True) == {*SHOP, "build/a.py"}


def test_denied_and_outside_files_are_not_shown(plant: Plant) -> None:
    root = plant({"in/a.py": "def pay(): ...\n", "in/secret/b.py": "pay()\n", "out.py": "pay()\n"})
    ws = sync.Workspace(root / "in", deny=["secret/"])
    assert [one.path for one in ws.find_references_result("pay").references] == ["a.py"]
    with pytest.raises(AccessDeniedError):
        ws.find_references_result("pay", "secret")
    with pytest.raises(AccessDeniedError):
        ws.find_references_result("pay", "../out.py")


def test_globs_name_no_denied_and_no_ignored_file(plant: Plant) -> None:
    """rg's `--glob` includes ignored files again, and so does the glob of a denied file."""
    files = dict.fromkeys(("a/x.py", "a/secret.py", "a/made.py", "b/x.py"), "pay()\n")
    ws = sync.Workspace(plant({**files, ".ignore": "made.py\n"}), deny=["secret.py"])
    for glob in ("a/*.py", "a/{x,secret,made}.py", "a/**"):
        assert [one.path for one in ws.find_references_result("pay", file_pattern=glob).references] == ["a/x.py"]
    for glob in ("a/secret.py", "a/made.py"):
        assert ws.find_references_result("pay", file_pattern=glob).references == ()


def test_secret_in_the_name_of_the_definition_around_a_use_is_masked(plant: Plant) -> None:
    secret = "ghp_" + "a1B2" * 9
    root = plant({"a.md": f"# Keys {secret}\n\ninner\n"})
    assert secret in sync.Workspace(root).find_references_result("inner").model_dump_json()
    assert secret[:8] not in sync.Workspace(root, redact=True).find_references_result("inner").model_dump_json()


@pytest.mark.parametrize("lead", ["", "x = 1  # " + "." * 170])
def test_secrets_are_masked_before_lines_are_cut(plant: Plant, lead: str) -> None:
    secret = "ghp_" + "a1B2" * 9
    text = f"def outer(token='{secret}'):\n    inner()\n{lead}; inner('{secret}')\n"
    root = plant({"a.py": text.replace("\n; ", "\n")})
    plain = sync.Workspace(root).find_references_result("inner")
    assert secret[:20] in plain.model_dump_json()
    found = sync.Workspace(root, redact=True).find_references_result("inner")
    assert secret[:8] not in found.model_dump_json() and secret[:8] not in str(found)
    assert len(found.references) == 2


@pytest.mark.parametrize("max_chars", [1_000, 20_000])
def test_answer_fits_and_says_how_to_go_on(plant: Plant, max_chars: int) -> None:
    ws = sync.Workspace(plant({"a.py": "def f(): ...\n" + "f()\n" * 3_000}), max_chars=max_chars)
    found = ws.find_references_result("f", limit=5_000)
    assert len(str(found)) <= max_chars
    assert found.truncated and found.next_offset == len(found.references)
    assert f"offset={found.next_offset} gives the next page." in str(found)
    assert len(str(ws.structured(found))) <= max_chars * 1.1


def test_mistakes_are_answered(plant: Plant) -> None:
    ws = sync.Workspace(plant(SHOP))
    assert ws.find_references("a b") == (
        "Error: name must be a name such as total or Cart.total, got 'a b'; search for other texts with a pattern"
    )
    assert ws.find_references("nothing").startswith("No line has the name nothing. Search for a part of the name")
    assert ws.find_references("pay", "gone").startswith("Error: gone does not exist")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("get_usr_name", "get_user_name"),
        ("get_user_nmae", "get_user_name"),
        ("getUserName", "get_user_name"),
        ("GET_USER_NAME", "get_user_name"),
        ("Jar.get_usr_name", "get_user_name"),
        ("/cookiejar/i", "CookieJar"),
        ("CookeJar", "CookieJar"),
        ("größe_der_datie", "größe_der_datei"),
        ("$skope", "$scope"),
    ],
)
def test_typo_of_a_symbol_names_the_symbol(rg: RgBinary, plant: Plant, name: str, meant: str) -> None:
    names = ("get_user_name", "CookieJar", "größe_der_datei", "$scope", "unlike", "denied_cookie_jar", "hidden_cookie")
    root = plant({"a.js": "\n".join(names[:5]), "secret.js": names[5], ".hidden.js": names[6]})
    found = sync.Workspace(root, rg=rg, deny=["secret.js"]).find_references(name)
    assert re.search(r"Did you mean (.+?)\?", found), found
    assert meant.lstrip("$") in re.findall(r"Did you mean (.+?)\?", found)[0].split(" or ")
    assert "denied" not in found and "hidden_cookie" not in found and "unlike" not in found


@pytest.mark.parametrize("name", ["zzzzzzzz", "abc", "user"])
def test_symbol_that_is_close_to_nothing_has_no_question(rg: RgBinary, plant: Plant, name: str) -> None:
    assert "Did you mean" not in sync.Workspace(plant({"a.py": "get_user_name = CookieJar"}), rg=rg).find_references(
        name
    )


def test_close_word_of_a_masked_or_linked_file_is_not_shown(rg: RgBinary, plant: Plant, tmp_path: Path) -> None:
    root = plant({"a.py": "api_key = 'ghp_" + "a1B2" * 9 + "'\n"})
    masked = sync.Workspace(root, rg=rg, redact=True).find_references("ghp_" + "a1B2" * 8 + "a1B3")
    assert "Did you mean" not in masked
    (tmp_path / "outside.py").write_text("outside_word = 1\n")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    assert "outside_word" not in sync.Workspace(root, rg=rg, follow=True).find_references("outside_wrod")


def test_only_so_many_words_are_compared_with_a_symbol(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(close_names, "MAX_WORDS", 2)
    root = plant({"a.py": "get_user_nome, get_user_nume, get_user_neme = 1, 2, 3\n"})
    said = sync.Workspace(root).find_references("get_user_name")
    assert "get_user_nome" in said and "get_user_nume" in said and "get_user_neme" not in said


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("/CookieJar/i", "CookieJar"),
        (r"/\bCookieJar\b/", "CookieJar"),
        ("BasicAuth()", "BasicAuth"),
        ("BasicAuth(user, key)", "BasicAuth"),
        ("Cart/total", "Cart.total"),
        ("/Cart/total[0]", "Cart.total"),
        ("`total`", "total"),
        ("def total", "total"),
        ("async def total(self)", "total"),
        ("class Cart", "Cart"),
        ("Cart::total", "Cart::total"),
        ("def", "def"),
    ],
)
def test_symbol_is_understood_as_models_write_it(written: str, name: str) -> None:
    assert plain_symbol(written) == name


TREE = {
    "till.py": "def pay(amount):\n    return amount\n",
    "cart.py": "from till import pay\n\n\nclass Cart:\n    def total(self):\n        return pay(1)\n",
    "show.py": "from cart import Cart\n\n\ndef show(cart):\n    print(cart.total())\n\n\nshow(Cart())\n",
    "deny/other.py": "from cart import Cart\n\nCart().total()\n",
}
CALLERS = """
Calls:
  cart.py:6: return pay(1)  [in Cart.total]

Uses of Cart.total, which uses pay:
  show.py:5: print(cart.total())  [in show; medium confidence]

Uses of show, which uses Cart.total, which uses pay:
  show.py:8: show(Cart())  [medium confidence]

(1 definition and 2 uses in 3 lines of 2 files. 2 uses of 2 definitions around them.)"""


@pytest.mark.parametrize("api", APIS)
def test_callers_of_callers_are_shown_with_what_they_lead_to(api: str, plant: Plant) -> None:
    """Denied files are not followed; pages continue in the callers."""
    asked = Asked(api, plant(TREE), deny="deny/")
    assert slashed(asked.find_references("pay", depth=4)).endswith(CALLERS)
    page = asked.find_references_result("pay", depth=4, offset=3, limit=1)
    assert [one.chain for one in page.references] == [("Cart.total",)] and page.next_offset == 4
    assert asked.find_references("pay", depth=0) == asked.find_references("pay")
    assert asked.find_references("pay", depth=6) == "Error: depth must be 5 or less, got 6"


def test_callers_are_those_of_a_revision(plant: Plant) -> None:
    root = plant(TREE)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")
    for path in ("cart.py", "show.py"):
        (root / path).write_text("")
    ws = sync.Workspace(root, deny="deny/")
    assert slashed(ws.find_references("pay", depth=4, rev="HEAD")).endswith(CALLERS)
    assert "Uses of" not in ws.find_references("pay", depth=4)


def test_secrets_in_the_names_of_a_chain_are_masked(plant: Plant) -> None:
    token = "ghp_" + "Qx7TrB9pLm2ZkV4nWs8Jc6Yd1Hf3Ga5Re0Tu"
    code = f"def pay(): ...\n\n\ndef {token}():\n    pay()\n\n\n{token}()\n"
    text = sync.Workspace(plant({"a.py": code}), redact=True).find_references("pay", depth=2)
    assert "\nUses of " in text and token not in text
