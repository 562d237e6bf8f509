"""Masked secrets: rules, private keys of many lines, and the answers of all tools."""

import base64
import io
import json
import random
import string
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from _operations.test_revisions import git
from ripwrap import SECRET_RULES, Rule, load_rules, sync
from ripwrap.workspace import redact as redact_module
from ripwrap.workspace.redact import (
    MAX_SECRET_CHARS,
    UNKNOWN_KEYS,
    KeyScanner,
    Mask,
    Redacted,
    Redaction,
    built_in_redaction,
    key_lines,
)
from ripwrap.workspace.shown_lines import content_matches
from support.effort import times
from support.tools import APIS, Asked

Plant = Callable[..., Path]
redact = built_in_redaction()

_LETTERS = string.ascii_letters + string.digits
RANDOM = random.Random(22)


def drawn(length: int, letters: str = _LETTERS) -> str:
    return "".join(RANDOM.choices(letters, k=length))


# Made at run time, so that no scanner takes this file for one with secrets.
SECRETS = {
    "aws-access-key": [f"{start}{drawn(16, string.ascii_uppercase)}" for start in ("AKIA", "ASIA")],
    "github-token": ["ghp_" + drawn(36), "ghs_" + drawn(36), "github_pat_" + drawn(22) + "_" + drawn(59)],
    "gitlab-token": ["glpat-" + drawn(20), "glrt-" + drawn(26)],
    "slack-token": [f"xoxb-{drawn(12, string.digits)}-{drawn(24)}", f"xapp-1-{drawn(10)}-{drawn(12)}-{drawn(40)}"],
    "stripe-key": ["sk_live_" + drawn(24), "rk_test_" + drawn(30), "whsec_" + drawn(32)],
    "google-key": ["AIza" + drawn(35), "GOCSPX-" + drawn(28), "ya29." + drawn(60)],
    "openai-key": ["sk-proj-" + drawn(48), "sk-" + drawn(48)],
    "anthropic-key": [f"sk-ant-api03-{drawn(93)}-AA"],
    "jwt": [".".join("ey" + drawn(30) for _ in range(2)) + "." + drawn(43)],
}
ALL_SECRETS = [secret for secrets in SECRETS.values() for secret in secrets]
BEGIN = "-----BEGIN"  # not in one piece with what follows: examples/check_forbidden.py finds keys in this repository
KEY_LINES = [base64.b64encode(RANDOM.randbytes(48)).decode() for _ in range(6)] + ["Qg=="]
KEY = "\n".join([f"{BEGIN} RSA PRIVATE KEY-----", *KEY_LINES, "-----END RSA PRIVATE KEY-----"])
KEY_MASK = "[redacted: private-key]"


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("frame", ["{}", "key = '{}'", 'x("{}", 1)', "# see {} and more", "A={}", "curl -H 'X: {}' x"])
def test_secret_of_a_provider_is_masked(name: str, frame: str) -> None:
    for secret in SECRETS[name]:
        assert redact(frame.format(secret)).text == frame.format(f"[redacted: {name}]")


@pytest.mark.parametrize(
    ("line", "secret", "name"),
    [
        ('password = "hunter2"', "hunter2", "password"),
        ("PASSWORD: str = 'hunter2'", "hunter2", "password"),
        ('{"db_password": "hun\\"ter2", "x": 1}', 'hun\\"ter2', "password"),
        ('os.environ["API_KEY"] = "hunter2"', "hunter2", "password"),
        ("secret_key => 'hunter2',", "hunter2", "password"),
        ("export DB_PASSWORD=hunter2", "hunter2", "password"),
        ("GITHUB_TOKEN=hunter", "hunter", "password"),
        ("  password: hunter2hunter", "hunter2hunter", "password"),
        ("client.secret=hunter2hunter", "hunter2hunter", "password"),
        ("postgres://me:hunter2@host/db", "hunter2", "url-password"),
        ("x = 'redis://:hunt@er2@host'", "hunt@er2", "url-password"),
        ("git clone https://hunter2hunter2hunter2@host/x", "hunter2hunter2hunter2", "url-token"),
        ("https://hooks.slack.com/services/T0/B0/hunter2hunter2", "T0/B0/hunter2hunter2", "slack-webhook"),
        ("aws_secret_access_key = " + "h/Un+er2" * 5, "h/Un+er2" * 5, "aws-secret-key"),
    ],
)
def test_assigned_secret_is_masked(line: str, secret: str, name: str) -> None:
    assert redact(line).text == line.replace(secret, f"[redacted: {name}]")


@pytest.mark.parametrize(
    "line",
    [
        "password = get_password()",
        "token = tokens[0]",
        "def reset_password(token: str) -> None:",
        'password = ""',
        "password = '${DB_PASSWORD}'",
        "https://user:${PASS}@host/",
        "https://user:<password>@host/",
        "token: ${{ secrets.TOKEN }}",
        "if 'PRIVATE KEY' in text:",
        f'BEGIN = "{BEGIN} PRIVATE KEY-----" if x else None',
        "risk_test_of_something_long_and_harmless",
        "glibc-headers-2.31-something-long-and-more",
        "sha256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "me@host: http://host:8080/a@b",
        "-----BEGIN CERTIFICATE-----",
        "eyes.eyelashes.eyebrows",
    ],
)
def test_harmless_line_stays(line: str) -> None:
    assert redact(line).text == line


@pytest.mark.parametrize("indent", ["", "    ", "# ", "+", ' "'])
def test_private_key_keeps_its_lines(indent: str) -> None:
    text = "\n".join(["x = 1", *(f"{indent}{line}" for line in KEY.split("\n")), "y = 2"])
    masked = redact(text).text.split("\n")
    assert len(masked) == text.count("\n") + 1
    assert (masked[0], masked[-1]) == ("x = 1", "y = 2")
    assert not any(part in line for line in masked for part in KEY_LINES)
    assert all(line.strip().endswith(KEY_MASK) for line in masked[1:-1])


def test_private_key_on_one_line_is_masked() -> None:
    line = f'{{"private_key": "{KEY.replace(chr(10), chr(92) + "n")}\\n", "x": 1}}'
    assert redact(line).text == f'{{"private_key": "{KEY_MASK}", "x": 1}}'


def test_key_without_an_end_stops_at_a_line_of_code() -> None:
    text = "\n".join([*KEY.split("\n")[:4], "y = compute(1)", "pass"])
    assert redact(text).text.split("\n") == [*[KEY_MASK] * 4, "y = compute(1)", "pass"]


def test_headers_and_blank_lines_are_within_a_key() -> None:
    first, *rest = KEY.split("\n")
    text = "\n".join([first, "Proc-Type: 4,ENCRYPTED", "", *rest, "z = 3"])
    assert redact(text).text.split("\n") == [KEY_MASK, KEY_MASK, "", *[KEY_MASK] * len(rest), "z = 3"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig"])
def test_key_lines_are_found_in_the_whole_file(encoding: str) -> None:
    text = f"a\n{KEY}\n{KEY}\nb\n"
    keys = key_lines(io.BytesIO(text.encode(encoding)))
    assert keys.scanned == text.count("\n") + 1
    inside = [number for number in range(keys.scanned + 9) if number in keys.numbers]
    assert inside == [*range(2, 2 + 2 * (len(KEY_LINES) + 2))]
    assert keys.numbers and not UNKNOWN_KEYS.numbers  # without a key, no line of a file is looked up
    assert redact("Qg==", 9, keys).text == KEY_MASK
    assert redact("Qg==", 20, keys).text == "Qg=="


def test_line_of_a_key_in_an_unknown_file_is_recognised() -> None:
    assert redact(f"  {KEY_LINES[0]}").text == f"  {KEY_MASK}"
    assert redact("Qg==").text == "Qg=="


@given(
    st.lists(
        st.one_of(
            st.sampled_from([*ALL_SECRETS, *KEY.split("\n"), 'password = "hunter2"', "\r", "", "é", "://", "@"]),
            st.text(max_size=20).filter(lambda text: "\n" not in text),
        ),
        max_size=30,
    )
)
def test_masks_keep_lines_and_hide_secrets(lines: list[str]) -> None:
    text = "\n".join(lines)
    redacted = redact(text)
    assert redacted.text.count("\n") == text.count("\n")
    assert not any(secret in redacted.text for secret in ALL_SECRETS)
    assert all(first.end <= second.start for first, second in zip(redacted.masks, redacted.masks[1:], strict=False))
    rebuilt = text
    for mask in reversed(redacted.masks):
        rebuilt = rebuilt[: mask.start] + mask.text + rebuilt[mask.end :]
    assert rebuilt == redacted.text
    for offset in range(len(text)):
        if not any(mask.start <= offset < mask.end for mask in redacted.masks):
            start, end = redacted.moved((offset, offset + 1))
            assert redacted.text[start:end] == text[offset]


def test_span_in_a_secret_becomes_its_mask() -> None:
    redacted = Redacted("a [redacted: x] b", (Mask(2, 5, "x"),), (2,))
    assert redacted.moved((3, 4)) == (2, 15)
    assert redacted.moved((0, 1)) == (0, 1)
    assert redacted.moved((6, 7)) == (16, 17)


PREFIXES = (
    *("a", "A_", "-", "_", ".", "=", '"', "'", " ", "\\", "+", "pass", "pass.", "password", "secret", "token"),
    *("api_key", "password=", "password:1a", 'password="', "password='", 'password="\\', "password : a | b :"),
    *("secret.a.b=", "_pwd"),
    *("aws", "aws=", "AKIA", "AKIAABCDEFGHIJKLMNOP ", "ghp_", "github_pat_", "glpat-", "xoxb-", "xapp-1-", "a.b.c."),
    *("hooks.slack.com/services/", "sk_live_", "whsec_", "AIza", "GOCSPX-", "ya29.", "sk-", "sk-ant-", "ey.", ".ey"),
    *("a.ey", "://", "://a:", "://a@", "://a:b", "A_PASS", "PASSWORD_A", "A_A_PASSWORD=", "PASSWORD=", "token: a1"),
    *(BEGIN, f"{BEGIN} PRIVATE KEY-----", f"{BEGIN} PRIVATE KEY-----+", "-----END PRIVATE KEY-----", "PRIVATE KEY"),
    *(f"{BEGIN} PRIVATE KEY----------END PRIVATE KEY-----", f"{'A' * 39}!"),
)
"""Beginnings of secrets, and characters that the rules repeat."""


def hostile_texts() -> Iterator[str]:
    """Yield each prefix and random sequences of prefixes."""
    yield from PREFIXES
    texts = random.Random(36)
    for _ in range(times(30, 2_000)):
        yield "".join(texts.sample(PREFIXES, texts.choice([2, 2, 3])))


@pytest.mark.slow
@pytest.mark.timeout(90)
@pytest.mark.parametrize("end", ["", '"', "@", "!"])
def test_rules_take_linear_time(end: str) -> None:
    # Quadratic matching would take minutes, longer than a test may take.
    size = times(30_000, 1_000_000)
    for piece in hostile_texts():
        line = piece * (size // len(piece)) + end
        for text in (line, f"{BEGIN} PRIVATE KEY-----\n{line}"):
            assert redact(text).text.count("\n") == text.count("\n")


class CopiedText(str):
    """Text that counts the characters of the parts that are copied from it."""

    copied: int = 0

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        part = super().__getitem__(key)
        CopiedText.copied += len(part)
        return part


@pytest.mark.parametrize(
    "piece", [f"{BEGIN} PRIVATE KEY----------END PRIVATE KEY-----", f"{BEGIN} PRIVATE KEY-----{'a' * 44}"]
)
def test_markers_of_keys_in_a_long_line_are_found_without_copies_of_the_line(piece: str) -> None:
    line = CopiedText(piece * 2_000)
    CopiedText.copied = 0
    assert list(KeyScanner().parts(line))
    assert CopiedText.copied <= len(line)


class LateError(Exception):
    """Error of a check at a deadline."""


def late_after(number: int) -> tuple[Callable[[], None], list[int]]:
    """Return a check that raises an error at the call with this number, and the list of its calls."""
    calls: list[int] = []

    def check() -> None:
        calls.append(1)
        if len(calls) == number:
            raise LateError

    return check, calls


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["a", "password=", "PRIVATE KEY ", PREFIXES[-2]])
def test_deadline_is_kept_in_one_long_line(piece: str) -> None:
    line = piece * (1_000_000 // len(piece))
    check, calls = late_after(0)
    redact(line, check=check)
    assert len(calls) > 50
    with pytest.raises(LateError):
        redact(line, check=late_after(40)[0])


def test_keys_are_sought_until_the_deadline() -> None:
    text = f"{BEGIN} PRIVATE KEY-----\n" + "\n" * 100_000
    with pytest.raises(LateError):
        key_lines(io.BytesIO(text.encode()), check=late_after(1_000)[0])


@pytest.mark.slow
def test_lines_of_an_endless_key_take_a_byte_each() -> None:
    text = f"{BEGIN} PRIVATE KEY-----\n" + "\n" * 200_000
    file = io.BytesIO(text.encode())
    tracemalloc.start()
    keys = key_lines(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 200_000 in keys.numbers
    assert 300_000 not in keys.numbers
    assert peak < 2_000_000


@pytest.mark.parametrize("at", [0, MAX_SECRET_CHARS - 20, 2 * MAX_SECRET_CHARS - 20, 5 * MAX_SECRET_CHARS - 1])
@pytest.mark.parametrize("length", [40, MAX_SECRET_CHARS - 100, 3 * MAX_SECRET_CHARS])
def test_secret_in_a_long_line_is_masked_as_a_whole(at: int, length: int) -> None:
    token = f"ghp_{'aB3' * (length // 3)}"
    before, after = " " * at, " " * (6 * MAX_SECRET_CHARS)
    assert redact(f"{before}{token}{after}").text == f"{before}[redacted: github-token]{after}"


def test_deadline_of_reading_a_file_is_not_taken_for_an_unreadable_file(tree: Path) -> None:
    def check() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        redact.of_file(str(tree), "key.txt", follow=False, check=check)


@pytest.fixture
def tree(plant: Plant) -> Path:
    token = SECRETS["github-token"][0]
    return plant(
        {
            "app.py": f'def connect():\n    token = "{token}"\n    return token\n',
            "key.txt": f"first\n{KEY}\nlast\n",
            "long.js": f"{'x' * 30} needle {token} {'y' * 3_000}\n",
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_answers_have_no_secrets(api: str, tree: Path) -> None:
    token = SECRETS["github-token"][0]
    asked = Asked(api, tree, redact=True)
    texts = [
        asked.grep_content("token"),
        asked.grep_content("connect", sections=True, context_lines=5),
        asked.grep_content("ghp_"),
        asked.grep_content("(?s)def.*return", multiline=True),
        asked.grep_content("needle"),
        asked.read_file("app.py"),
        asked.read_file("key.txt", 4, 5),
        asked.codebase_search("connect token"),
        asked.codebase_search("first last key"),
    ]
    assert not any(token in text or any(line in text for line in KEY_LINES) for text in texts)
    assert '2:     token = "[redacted: github-token]"' in texts[0]
    assert "[redacted: github-token]" in texts[2]
    assert texts[6] == f"File: key.txt\n  4: {KEY_MASK}\n  5: {KEY_MASK}\n\n(Lines 4 to 5 of 11.)"
    assert token in Asked(api, tree).read_file("app.py")


@pytest.mark.parametrize("pattern", ["Qg==", KEY_LINES[3][5:15].replace("+", r"\+"), "^[A-Za-z0-9+/]{64}$"])
def test_match_in_the_middle_of_a_key_is_masked(tree: Path, pattern: str) -> None:
    found = sync.Workspace(tree, redact=True).grep_content_result(pattern, context_lines=0)
    assert {match.match for match in found.matches} == {KEY_MASK}
    assert found.total_matches == len(found.matches)


@pytest.mark.slow
def test_redacted_answers_have_the_same_lines_and_counts(tree: Path) -> None:
    plain, masked = sync.Workspace(tree), sync.Workspace(tree, redact=True)
    multiline = {"pattern": "(?s)a.*", "multiline": True}
    for arguments in ({"pattern": "."}, {"pattern": "token", "context_lines": 1}, multiline):
        one, other = (workspace.call_result("grep_content", arguments).model_dump() for workspace in (plain, masked))
        assert one["total_matches"] == other["total_matches"]
        assert [(match["file"], match["line"]) for match in one["matches"]] == [
            (match["file"], match["line"]) for match in other["matches"]
        ]
        assert [match["match"].count("\n") for match in one["matches"]] == [
            match["match"].count("\n") for match in other["matches"]
        ]
    files = [workspace.read_file_result("key.txt") for workspace in (plain, masked)]
    assert [[len(block.lines) for block in file.blocks] for file in files] == [[9 + 2]] * 2
    assert [file.total_lines for file in files] == [11] * 2


@pytest.mark.parametrize("before", range(0, 60, 7))
def test_secret_across_the_end_of_a_cut_line_is_masked(plant: Plant, before: int) -> None:
    token = SECRETS["github-token"][0]
    root = plant({"a.txt": f"{'x ' * (before // 2)}{token} {'y' * 200}\n"})
    workspace = sync.Workspace(root, redact=True, max_line=40)
    for text in (workspace.read_file("a.txt"), workspace.grep_content("y{200}"), workspace.grep_content("^x|ghp")):
        assert not any(token[at : at + 8] in text for at in range(len(token) - 8))


@pytest.mark.slow
@pytest.mark.parametrize("before", [0, 500_000, 2_000_000])
def test_secret_in_a_very_long_line_is_masked(plant: Plant, before: int) -> None:
    token = SECRETS["github-token"][0]
    root = plant({"a.js": f"{'x;' * (before // 2)} {token} needle {token}{';y' * 500_000}\n"})
    for pattern in ("needle", "ghp_", "^x|needle", "[a-z]+$"):
        found = sync.Workspace(root, redact=True).grep_content_result(pattern)
        (match,) = found.matches
        assert token not in match.match
        assert len(match.match) <= 502
    assert "[redacted: github-token] needle" in sync.Workspace(root, redact=True).grep_content("needle")


@pytest.mark.slow
def test_large_file_is_judged_line_by_line_at_its_end(plant: Plant) -> None:
    filler = "x" * 999 + "\n"
    root = plant({"big.txt": filler * (redact_module.MAX_SCANNED_BYTES // 1000 + 10) + KEY + "\n"})
    found = sync.Workspace(root, redact=True).grep_content_result("^[A-Za-z0-9+/]{64}$", context_lines=0)
    assert {match.match for match in found.matches} == {KEY_MASK}


RULES_FILE = r"""
[[rules]]
id = "ticket"
pattern = '''(?i)\bticket[ \t]*[:=][ \t]*(TK-[0-9]{4,})(?:\s|$)'''
keywords = ["absent"]
path = '''\.never$'''
[[rules.allowlists]]
target = "line"
regexes = ['''# example$''']

[[rules]]
id = "noise"
pattern = '''noise=(\w+)-(\w+)'''
secret_group = 2
entropy = 2.5

[[rules]]
id = "file"
path = '''\.p12$'''
"""


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("Ticket: TK-12345 done", "Ticket: [redacted: ticket] done"),
        ("TICKET=TK-99999", "TICKET=[redacted: ticket]"),
        ("ticket: TK-\u0661\u0662\u0663\u0664", "ticket: TK-\u0661\u0662\u0663\u0664"),
        ("ticket: TK-12345 # example", "ticket: TK-12345 # example"),
        ("ticket: TK-12345 # gitleaks:allow", "ticket: [redacted: ticket] # gitleaks:allow"),
        ("noise=aaaaaaaa-abcdefgh noise=x-aaaaaaaa", "noise=aaaaaaaa-[redacted: noise] noise=x-aaaaaaaa"),
        ("password = 'hunter2'", "password = 'hunter2'"),
    ],
)
def test_rules_of_a_file_mask_secrets(tmp_path: Path, plant: Plant, line: str, masked: str) -> None:
    """`redact` and `scan` had rules of their own. Paths and keywords do not matter for a mask."""
    (tmp_path / "rules.toml").write_text(RULES_FILE, "utf-8")
    rules = load_rules(tmp_path / "rules.toml")
    workspace = sync.Workspace(plant({"a.txt": f"first\n{line}\n{KEY}\n"}), redact=rules)
    assert workspace.read_file_result("a.txt").blocks[0].lines[1:3] == (masked, KEY_MASK)
    both = sync.Workspace(plant({"b.txt": f"{line}\n"}), redact=(*SECRET_RULES, *rules))
    assert "hunter2" not in both.read_file("b.txt")


def test_rules_of_a_workspace_are_checked_when_it_is_made(tmp_path: Path) -> None:
    mask = sync.Workspace(tmp_path, redact={"word\n": r"\bsecret-\w+"})
    (tmp_path / "a.txt").write_text("a secret-b\n", "utf-8")
    assert "a [redacted: word\\x0a]" in mask.read_file("a.txt") or "\\n]" in mask.read_file("a.txt")
    for rules, says in (
        ([], "no rules given"),
        ([Rule(id="a", pattern="a"), Rule(id="a", pattern="b")], "2 rules are called 'a'"),
        (
            {"a": "(?x)a", "b": "b", "c": "("},
            r"by 2 rules, leave out 'a', 'c'; '\(\?x\)a', at character 1 of .* is not read",
        ),
        ({"a": r"\p{Greek}"}, r"leave out 'a'; '\\\\p\{Greek\}', at character 1"),
    ):
        with pytest.raises(ValueError, match=says):
            sync.Workspace(tmp_path, redact=rules)
    with pytest.raises(TypeError, match="rules must be a mapping"):
        sync.Workspace(tmp_path, redact="abc")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a|a)*b", "(?:a{1,99}){1,99}b", ".*a.*b.*c", "(a?){30}b", r"(\w+\s*)+:"]
)
def test_rule_that_may_take_too_long_is_refused(pattern: str) -> None:
    """Python's `re` takes minutes for some of these patterns and 40 characters, and cannot be interrupted."""
    with pytest.raises(
        ValueError, match="cannot mask secrets by 1 rule, leave out 'slow'; there are more than 1,000,000 w"
    ):
        Redaction([Rule(id="slow", pattern=pattern)])


SLOW_RULES = (
    r"(?i)[\w.-]{0,50}?(?:token)(?:[ \t\w.-]{0,20})[\s'\"]{0,3}(?:=|>|:{1,3}=)[\x60'\"\s=]{0,5}([a-z0-9]{32})",
    r"[a-z]{0,99}[a-z]{0,99}[a-z]{0,99}!",
    r"token[^!]*!",
    r"token.*:.*!",
)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", SLOW_RULES)
def test_rule_with_many_ways_can_be_ended_at_each_place(pattern: str) -> None:
    line = "token" * 20_000
    check, calls = late_after(200)
    redaction = Redaction([Rule(id="slow", pattern=pattern)])
    with pytest.raises(LateError):
        redaction(line, check=check)
    assert len(calls) == 200
    assert redaction("a token::=" + "a1" * 16 + "!").masks


@pytest.mark.slow
def test_what_a_scan_finds_is_masked(plant: Plant) -> None:
    """rg and Python's `re` find the same secrets by the same rules."""
    texts = random.Random(37)
    pieces = [
        *PREFIXES,
        *ALL_SECRETS,
        "${",
        "$(",
        "<",
        "<x>",
        "%s",
        "***",
        "[r",
        "hunter2",
        " ",
        "@",
        "://",
        "\u00e9",
        '"',
        "'",
    ]
    lines = [
        "".join(texts.choices(pieces, k=texts.randint(1, 7))).replace("\n", " ") for _ in range(times(1_000, 20_000))
    ]
    folder = plant({"a.txt": "".join(f"{line}\n" for line in lines)})
    found = 0
    for hit in sync.scan(cwd=folder, overlaps=True, text=True):
        line = lines[(hit.line_number or 0) - 1]
        (submatch,) = hit.submatches
        start = len(line.encode()[: submatch.start].decode())
        secret = next(filter(None, hit.groups))
        start += submatch.match.rindex(secret)
        masks = redact(line).masks
        assert any(mask.start <= start and start + len(secret) <= mask.end for mask in masks), (hit.rule, line)
        found += 1
    assert found > len(lines) // 20


def test_rules_are_documented() -> None:
    page = Path(__file__, "../../../docs/how-to/agents.md").resolve().read_text("utf-8")
    missing = {rule.id for rule in SECRET_RULES if f"`{rule.id.partition('/')[0]}`" not in page}
    assert missing == set()
    assert "`private-key`" in page


def test_masking_can_be_ended_between_lines(plant: Plant) -> None:
    """A match over 100,000 lines of `PASSWORD_PASSWORD_…` took 50 seconds, whatever the timeout."""
    folder, lines = plant({"a.txt": "x\n" * 9}), 0

    def check() -> None:
        nonlocal lines
        lines += 1
        if lines > 5:
            raise TimeoutError("enough")

    redactor = redact.of_file(str(folder), "a.txt", follow=False, check=check)
    with pytest.raises(TimeoutError, match="enough"):
        redactor("x\n" * 9, 1)
    assert lines == 6


def test_file_that_is_masked_too_slowly_is_an_error(plant: Plant) -> None:
    folder = plant({"a.txt": "x\n"})
    with pytest.raises(TimeoutError, match="the secrets in the file were not masked within 0 seconds; read a part"):
        sync.Workspace(folder, redact=True, timeout=0).read_bytes("a.txt")
    assert sync.Workspace(folder, timeout=0).read_bytes("a.txt") == b"x\n"


def test_long_line_in_a_match_of_several_lines_is_masked_where_it_is_shown(plant: Plant) -> None:
    token, lengths = SECRETS["github-token"][0], []
    folder = plant({"a.txt": f"needle\n{token} token{' y' * 500_000}\n"})
    (file,) = sync.grep("needle\n.*token", cwd=folder, multiline=True).files

    def redactor(text: str, first: int) -> redact_module.Redacted:
        lengths.append(len(text))
        return redact(text, first)

    (match,) = content_matches(file, "a.txt", 100, redactor, anchors=True)
    first, second = match.match.split("\n")
    assert first == "needle"
    assert second.startswith("[redacted: github-token] token y y") and len(second) == 101
    assert max(lengths) < 5 * redact_module.MAX_SECRET_CHARS


@pytest.mark.slow
@pytest.mark.parametrize(
    "secret", ["ghp_" + "a1B2" * 9, "AKIA" + "IOSFODNN7" + "Q4ZWXYB", "sk-ant-api03-" + "aB3d" * 23 + "-xAA"]
)
def test_names_of_branches_are_masked_in_answers_about_the_index(tmp_path: Path, secret: str) -> None:
    """A branch that was named after a token was shown by `index_status`."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    with sync.Workspace(folder, redact=True, index=tmp_path / "index") as workspace:
        for branch in (f"fix/{secret}", f"{secret}-2", "other"):
            git(folder, "checkout", "-q", "-b", branch)
            answers = [workspace.index_codebase(), workspace.index_status(), workspace.index_health_check()]
            assert [secret in answer for answer in answers] == [False] * 3
            assert (branch if branch == "other" else "fix/" * (branch[0] == "f")) in answers[1]
            assert secret not in json.dumps(workspace.structured(workspace.index_status_result()))
        git(folder, "branch", "-q", "-D", f"fix/{secret}", f"{secret}-2")
        pruned = workspace.index_codebase()
        assert "removed branches that are gone: " in pruned
        assert secret not in pruned
