"""Edits neither show nor unmask a secret that the tools mask, in a preview, in an answer, and in the written file."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from ripwrap._edits.planning import FileChange
from ripwrap.workspace.redact import MAX_SCANNED_BYTES, built_in_redaction
from ripwrap.workspace.replace_content import EditMasks
from support.effort import times

redact = built_in_redaction()

Plant = Callable[..., Path]

BEGIN = "-----" + "BEGIN"
TOKEN = "ghp_" + "a1B2" * 9
BODY = [f"MIIEpAIBAAKCAQEA{letter}bcdefGHIJKLmnopqrstuvwxyz0123456789ABCDEFGHIJKL" for letter in "qwert"]
KEY = "\n".join((f"{BEGIN} RSA PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "", *BODY, "-----END RSA PRIVATE KEY-----"))
PASSWORD = "hunter2secret"
TEXT = f"one\nDB_PASSWORD={PASSWORD}  # two\nthree {TOKEN} four\n\n{KEY}\nfive\n"
SECRETS = (PASSWORD, TOKEN, *BODY)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


UNMASKING: list[tuple[str, str, dict[str, Any]]] = [
    ("DB_PASSWORD=", "colour ", {}),  # the name by which the rule recognises the password
    ("PASSWORD", "WORD", {}),
    ("=", "=1234 ", {}),  # the rule then finds another value
    ("=", " ", {}),
    ("hunter2", "x", {}),  # a part of the secret
    ("ret  #", "ret#", {}),
    ("SECRET", "x", {"case_insensitive": True}),
    (r"DB_PASSWORD=(\w+)", "$1", {}),  # a copy of the secret
    (r"(DB_PASSWORD=(\S+))", "$1 $2", {}),
    (r"three (\S+)", "$0 = $1", {}),
    ("^one$.*^(three.+)four", "$1", {"multiline": True}),
    ("\nthree ", "three", {"multiline": True}),  # the line joins the next
    ("three gh", "three g h", {}),
    ("BEGIN RSA", "BEGIN", {}),  # the lines of a key are recognised by the first and last line
    ("BEGIN RSA PRIVATE", "BEGIN", {}),
    (f"{BEGIN} RSA PRIVATE KEY-----\n", "", {"multiline": True}),
    ("^MII", "!!! MII", {}),
    ("ENCRYPTED\n\n", "$0!\n", {"multiline": True}),
    ("one\n", "x", {"multiline": True}),  # the name of the password gets a letter before it
    ("^", "!\n", {}),
    ("$", "!", {}),
    (r"\n", "", {"multiline": True}),
]


@pytest.mark.parametrize("apply", [False, True])
@pytest.mark.parametrize(("pattern", "replacement", "options"), UNMASKING)
def test_edit_that_touches_or_unmasks_a_secret_is_refused(
    pattern: str, replacement: str, options: dict[str, Any], apply: bool, plant: Plant
) -> None:
    folder = plant({"a": TEXT})
    asked = sync.Workspace(folder, write=True, redact=True)
    arguments = {"pattern": pattern, "replacement": replacement, "apply": apply, **options}
    said = asked.call("replace_content", arguments)
    result = asked.replace_content_result(pattern, replacement, apply=apply, **options).model_dump_json()
    assert "1 file left out, e.g. a: left out: the replacement changes or shows a masked secret at line" in said
    assert not [secret for secret in SECRETS if secret in said or secret in result]
    assert (folder / "a").read_text() == TEXT


@pytest.mark.parametrize(
    ("pattern", "replacement", "options", "added"),
    [
        ("two", "2", {}, "DB_PASSWORD=[redacted: password]  # 2"),
        ("DB_PASS", "A_PASS", {}, "A_PASSWORD=[redacted: password]  # two"),
        ("four", "$0 4", {}, "three [redacted: github-token] four 4"),
        ("^one\n", "1\n2\n3\n", {"multiline": True}, "3"),
        ("five", f"token = '{TOKEN}'", {}, "token = '[redacted: github-token]'"),
        ("one|five", "x", {}, "x"),
    ],
)
def test_other_edits_are_shown_with_masks_and_written(
    pattern: str, replacement: str, options: dict[str, Any], added: str, plant: Plant
) -> None:
    folder = plant({"a": TEXT})
    asked = sync.Workspace(folder, write=True, redact=True, max_chars=20_000)
    said = asked.replace_content(pattern, replacement, apply=True, **options)
    assert f"\n+{added}\n" in said
    assert "Written: " in said
    for text in (said, asked.read_file("a"), asked.grep_content("", context_lines=9)):
        assert not [secret for secret in SECRETS if secret in text]
    assert all(secret in (folder / "a").read_text() for secret in SECRETS)


def test_file_without_secrets_is_changed_although_another_is_left_out(plant: Plant) -> None:
    folder = plant({"a": TEXT, "b": "DB_PASSWORD=\n"})
    said = sync.Workspace(folder, write=True, redact=True).replace_content("DB_PASSWORD=", "x", apply=True)
    assert "Written: 1 replacement in 1 file. 1 file left out" in said
    assert ((folder / "a").read_text(), (folder / "b").read_text()) == (TEXT, "x\n")


def test_without_redact_nothing_is_refused(plant: Plant) -> None:
    folder = plant({"a": TEXT})
    assert "Written" in sync.Workspace(folder, write=True).replace_content("DB_PASSWORD=", "x", apply=True)


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(times(20, 300)))
def test_lines_after_random_edits_mask_all_secrets_or_the_edits_are_refused(seed: int) -> None:
    rng = random.Random(seed)
    pieces = ["", "x", "\n", "=", "#", "a\nb", "-----END RSA PRIVATE KEY-----\n", "é", "'", " "]
    kept = 0
    for _ in range(50):
        text = "".join(rng.choice([TEXT, "é = ü\n", "a\n", KEY + "\n", "-", f"url://u:{PASSWORD}@h\n"]) for _ in "123")
        raw, changes, start = text.encode(), list[FileChange](), 0
        while len(changes) < rng.randint(1, 4):
            start = rng.randint(start, len(raw))
            end = min(len(raw), start + rng.choice((0, 0, 1, 3, 20)))
            changes.append(FileChange(start, end, raw[start:end], rng.choice(pieces).encode()))
            start = end + 1
            if start >= len(raw):
                break
        if EditMasks(redact).why_refused("a", raw, changes):
            continue
        kept += 1
        for change in reversed(changes):
            raw = raw[: change.start] + change.after + raw[change.end :]
        shown = redact(raw.decode("utf-8", "replace")).text
        assert not [secret for secret in SECRETS if secret in shown and secret not in redact(text).text], changes
    assert kept


def test_edit_of_a_blank_line_does_not_unmask_the_lines_of_a_key_after_it() -> None:
    raw = TEXT.encode()
    start = raw.index(b"ENCRYPTED\n\n") + 10
    for after, refused in ((b"!", True), (b"\n", False)):
        assert bool(EditMasks(redact).why_refused("a", raw, [FileChange(start, start, b"", after)])) == refused


@pytest.mark.slow
def test_file_that_is_too_large_to_be_masked_is_left_out() -> None:
    text = b"x\n" * (MAX_SCANNED_BYTES // 2)
    assert not EditMasks(redact).why_refused("a", text, [FileChange(0, 1, b"x", b"y")])
    assert "the limit for masking secrets" in EditMasks(redact).why_refused("a", text, [FileChange(0, 1, b"x", b"yy")])
