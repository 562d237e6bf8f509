"""Arguments for the shell of another machine: each shell reads the words that were quoted."""

import os
import shlex
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap.remote.finding import join, quote

SHELLS = [shell for shell in ("sh", "bash", "dash", "ksh", "mksh", "zsh", "fish", "busybox") if shutil.which(shell)]

HOSTILE = [
    "", " ", "-", "--", "-oProxyCommand=x", "'", '"', "\\", "\\'", "'\\''", "\\\\", "a\\", "\n", "a\nb\n", "\r", "\t",
    "$(touch x)", "`touch x`", "${HOME}", "$HOME", "~", "~root", "!", "!!", "*", "?", "[a]", "{a,b}", "a;b", "a&b",
    "a|b", "<a", ">a", "(a)", "#", "a#b", "=ls", "%self", "^", "\x7f", "\x01\x1b[31m", "ä", "\udcff\udc80", "$'\\n'",
]  # fmt: skip

BYTES = st.binary(max_size=30).map(lambda raw: raw.replace(b"\0", b""))
SPECIAL = st.text("'\"\\$`!\n ~=-%*(){}a", max_size=12).map(os.fsencode)


def read_by(shell: str, line: str) -> list[bytes]:
    """Return the words that a shell passes to a program."""
    argv = [shell, "sh"] if shell == "busybox" else [shell]
    print_all = 'sh -c \'for one do printf "%s\\000" "$one"; done\' sh '  # as in the real command, sh runs a script
    done = subprocess.run([*argv, "-c", print_all + line], capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout.split(b"\0")[:-1]


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_reads_hostile_words_unchanged(shell: str) -> None:
    assert read_by(shell, join(HOSTILE)) == [os.fsencode(word) for word in HOSTILE]


@given(st.lists(BYTES | SPECIAL, min_size=1, max_size=20))
def test_sh_reads_any_words_unchanged(words: list[bytes]) -> None:
    assert read_by("/bin/sh", join(map(os.fsdecode, words))) == words


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_quoted_word_is_one_word_for_shlex(word: str) -> None:
    assert shlex.split(quote(word.encode()).decode()) == [word]


@pytest.mark.parametrize("word", ["=ls", "%1", "~", "~root", "a b", "a=b", ""])
def test_words_that_a_shell_expands_are_quoted(word: str) -> None:
    assert quote(word.encode()) == f"'{word}'".encode()


def test_plain_word_is_not_quoted() -> None:
    assert quote(b"/srv/src-1.0/a_b,c:d@e+f") == b"/srv/src-1.0/a_b,c:d@e+f"


def test_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        quote(b"a\0b")
