"""Replacements of matches: what is replaced, how lines are indented, and texts that no longer parse."""

import pytest

pytest.importorskip("ast_grep_py")

from ripwrap._code.structure.worker import search

pytestmark = [pytest.mark.extra, pytest.mark.slow]


def edited(language: str, pattern: str, fix: str, before: str) -> str:
    """Return a text with all matches replaced; fail if a match is not, or if the new text does not parse."""
    found = search(pattern, language, fix, before.encode())
    text = before.encode()
    for _, _, _, edit in reversed(found["hits"]):
        if edit is not None:
            start, end, new = edit
            text = text[:start] + new.encode() + text[end:]
    assert found["broken_line"] is None, text.decode()
    return text.decode()


@pytest.mark.parametrize(
    ("language", "pattern", "fix", "before", "after"),
    [
        ("python", "f($A)", "g($A, 1)", "x = f(a)\n", "x = g(a, 1)\n"),
        ("python", "f($$$A)", "g($$$A)", "é = f(a,  b)", "é = g(a,  b)"),
        ("python", "if $A: $$$B", "while $A:\n  $$$B", "if a:\n  b\n  c\nelse:\n  d", "while a:\n  b\n  c\nelse:\n  d"),
        ("javascript", "const $A = $B", "let $A = $B", "const a = 1; f()", "let a = 1; f()"),
        ("javascript", "if ($A) { $$$B }", "if (!$A) { $$$B }", "if (a) {} else { b }", "if (!a) {  } else { b }"),
        ("javascript", "f($A)", "f({\n  a: $A\n})", "  f([\n    2\n  ])", "  f({\n    a: [\n      2\n    ]\n  })"),
        ("javascript", "f(`$A`)", "g(`$A`)", "  f(`    a\n    b`)", "  g(`    a\n    b`)"),
        ("rust", "$A.unwrap()", "$A?", "let a = b.c()\n    .unwrap();", "let a = b.c()?;"),
        ("go", "$A := $B", "var $A = $B", "package a\nfunc f() { b := c() }", "package a\nfunc f() { var b = c() }"),
        ("bash", "echo $A", "printf $$A $lower", "echo x", "printf x $lower"),
        ("python", "def $F(): $$$B", "def $F():\n  c()\n  $$$B", "async def f():\n  d", "async def f():\n  c()\n  d"),
        ("python", "for $A in $B: $C", "for $A in g($B): $C", "async for a in b: c", "async for a in g(b): c"),
        ("javascript", "function $F($A) {}", "function $F() {}", "async function f(a) {}", "async function f() {}"),
        ("java", "if ($A) { $$$B }", "while ($A) { }", "class A {{ if (a) { b(); } }}", "class A {{ while (a) { } }}"),
        ("javascript", "f($A, $A)", "g($A)", "f(a.b, a . b); f(a, b)", "g(a . b); f(a, b)"),
        ("python", "f($_, $$$, $A)", "g($A)", "f(1, [2])", "g([2])"),
        ("python", "f($$$A, $B)", "g($B)", "f(a,)", "g(a)"),
        ("python", "f($A, $B)", "f($B, $A)", "f(\n  a,  # why\n  b,\n)", "f(b, a)"),  # comments are lost
    ],
)  # fmt: skip
def test_edits_keep_what_the_pattern_does_not_have(
    language: str, pattern: str, fix: str, before: str, after: str
) -> None:
    """Among others, `async` before a match was lost."""
    assert edited(language, pattern, fix, before) == after


@pytest.mark.parametrize(
    ("language", "pattern", "text", "lost"),
    [
        ("python", "[$A for $B in $C]", "[a async for a in b]", "async"),
        ("javascript", "if ($A) { if ($B) { $$$C } } else { $$$D }", "if (a) { if (b) {} else { e } } else {}", "else"),
        ("typescript", "if ($A) { if ($B) { $$$C } } else { $$$D }", "if (a) { if (b) {} else { e } } else {}", "else"),
        ("javascript", "f(function $F($A) { $$$ })", "f(async function g(a) {})", "async"),
        ("python", "f($$$A,)", "f(a)", "a"),  # ast-grep captures nothing
        ("python", "($$$A, $$$B)", "(a, b)", "a"),
    ],
)  # fmt: skip
def test_match_of_which_code_would_be_lost_is_not_replaced(language: str, pattern: str, text: str, lost: str) -> None:
    """What the pattern lacks in its middle was lost."""
    ((_, _, _, edit),) = search(pattern, language, "f()", text.encode())["hits"]
    assert edit == f"`{lost}` is not in the pattern, and would be lost"


@pytest.mark.parametrize(
    ("language", "pattern", "text", "reason"),
    [
        (
            "python",
            "if x:\n  $A\n  $$$B\n  $A",
            "if x:\n  a\n  b\n  a",
            "$A captures different code in different places",
        ),
        ("python", "f($A, $$$B, $A)", "f(a, b, a)", "its parts were not found"),
        ("swift", "@$$$D $A", "struct A { @State private var a = 1 }", "its parts were not found"),
    ],
)
def test_match_with_parts_that_are_not_known_is_not_replaced(
    language: str, pattern: str, text: str, reason: str
) -> None:
    """Which part is replaced is never guessed."""
    hits = search(pattern, language, "f()", text.encode())["hits"]
    assert [edit for _, _, _, edit in hits if isinstance(edit, str)] == [reason]


@pytest.mark.parametrize(
    ("language", "fix", "text"),
    [
        ("javascript", "g($$$A, 1)", "f(a // b\n)"),
        ("javascript", "$$$A", "f(a // b\n) + 1"),
        ("javascript", "g($$$A, $$$A)", "f(a, // b\n)"),
        ("python", "g($$$A)", "f(a, # b\n)"),
        ("lua", "g($$$A)", "f(a -- b\n)"),
    ],
)
def test_code_does_not_become_part_of_a_comment(language: str, fix: str, text: str) -> None:
    """`// b + 1` parses, but is no sum."""
    ((_, _, _, edit),) = search("f($$$A)", language, fix, text.encode())["hits"]
    assert edit == "code would stand after a comment, in the same line"
    assert edited("javascript", "f($$$A)", "g($$$A, 1)", "f(a /* b */)") == "g(a /* b */, 1)"
    assert edited("python", "f($$$A)", "g(\n    $$$A\n)", "f(a, # b\n)") == "g(\n    a, # b\n)"


QUOTES = '"' * 3
STRINGS = {
    "python": "'''a\n    b\n'''",
    "javascript": "`a\n    ${b}\n  c`",
    "typescript": "`a\n    b`",
    "tsx": "`a\n    b`",
    "java": f"{QUOTES}\n    a\n  b{QUOTES}",
    "kotlin": f"{QUOTES}a\n    $b\n  c{QUOTES}",
    "scala": f"s{QUOTES}a\n    $b\n  c{QUOTES}",
    "go": "`a\n    b`",
    "rust": 'r#"a\n    b"#',
    "cpp": 'R"(a\n    b)"',
    "csharp": '@"a\n    b"',
    "php": "'a\n    b'",
    "ruby": '"a\n    #{b}\n  c"',
    "bash": '"a\n    $b\n  c"',
    "lua": "[[a\n    b]]",
    "elixir": f"{QUOTES}\n    a\n    {QUOTES}",
    "swift": f"{QUOTES}\n    a\n    {QUOTES}",
}
"""Strings with several lines, by language."""
AROUND = {
    "python": ("if c:\n    x = ", "\n"),
    "java": ("class A {\n    int a = ", ";\n}\n"),
    "csharp": ("class A {\n    int a = ", ";\n}\n"),
    "go": ("package a\nfunc b() {\n    ", "\n}\n"),
    "rust": ("fn b() {\n    ", ";\n}\n"),
    "cpp": ("void b() {\n    a = ", ";\n}\n"),
    "php": ("<?php\nif (1) {\n    ", ";\n}\n"),
    "kotlin": ("fun b() {\n    ", "\n}\n"),
    "scala": ("object B {\n    ", "\n}\n"),
    "bash": ("if c; then\n    ", "\nfi\n"),
    "lua": ("if c then\n    ", "\nend\n"),
    "ruby": ("if c\n    ", "\nend\n"),
    "elixir": ("if c do\n    ", "\nend\n"),
    "swift": ("if c {\n    ", "\n}\n"),
}
"""Code before and after a call, by language."""


@pytest.mark.parametrize("language", STRINGS)
def test_lines_of_strings_are_not_indented(language: str) -> None:
    """Contents of strings were indented with the code around them."""
    before, after = AROUND.get(language, ("if (c) {\n    ", ";\n}\n"))
    string = STRINGS[language]
    if language == "bash":
        assert edited(language, "f $A", "g \\\n  $A", f"{before}f {string}{after}") == (
            f"{before}g \\\n      {string}{after}"
        )
        return
    new = edited(language, "f($A)", "g(\n  $A)", f"{before}f({string}){after}")
    assert new == f"{before}g(\n      {string}){after}"


def test_strings_of_the_fix_are_not_indented() -> None:
    """Nor is code that a metavariable puts into a string, nor a here-document."""
    fix = "log('''\n  $A\n''',\n    $A)"
    expected = "if 1:\n    log('''\n  a(\n        1)\n''',\n        a(\n            1))\n"
    assert edited("python", "f($A)", fix, "if 1:\n    f(a(\n        1))\n") == expected
    fix = "log(\n    '''$A''')"
    expected = "if 1:\n    log(\n        '''a(\n        1)''')\n"
    assert edited("python", "f($A)", fix, "if 1:\n    f(a(\n        1))\n") == expected
    heredoc = "f() {\n    if a; then cat <<EOF\n x\n  y\nEOF\n    b; fi\n}\n"
    new = "f() {\n    if ! a; then\n      cat <<EOF\n x\n  y\nEOF\n      b\n    fi\n}\n"
    assert edited("bash", "if $A; then $$$B; fi", "if ! $A; then\n  $$$B\nfi", heredoc) == new


def test_block_scalars_of_yaml_are_indented_with_their_key() -> None:
    """There, the indentation is not part of the contents."""
    assert edited("yaml", "a: $A", "b:\n  a: $A", "a: |\n  x\n  y") == "b:\n  a: |\n    x\n    y"


def test_a_comment_before_a_block_does_not_change_its_indentation() -> None:
    """The metavariable captures the comment, too. So it is with tabs, and after `else:`."""
    fix = "while $A:\n    x()\n    $$$B"
    block = "if a:  # why\n    b()\n\n    c()\n"
    assert edited("python", "if $A: $$$B", fix, block) == "while a:\n    x()\n    # why\n    b()\n\n    c()\n"
    tabs = "def f():\n\tif a:  # why\n\t\tb()\n\t\tc()\n"
    new = "def f():\n\twhile a:\n\t    x()\n\t    # why\n\t    b()\n\t    c()\n"
    assert edited("python", "if $A: $$$B", fix, tabs) == new
    both = "if a:\n    b()\nelse:  # why\n    c()\n    d()\n"
    new = "if not a:\n    y()\n    # why\n    c()\n    d()\n"
    assert edited("python", "if $A:\n    $$$B\nelse:\n    $$$C", "if not $A:\n    y()\n    $$$C", both) == new


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if 1:\r\n    f(a)\r\n", "if 1:\r\n    g(\r\n        a,\r\n        '''\r\n''')\r\n"),
        ("f(a)", "g(\n    a,\n    '''\n''')"),
        ("\r\nf(a)", "\r\ng(\r\n    a,\r\n    '''\r\n''')"),
        ("f(a)\n\r\n", "g(\n    a,\n    '''\n''')\n\r\n"),
        ("f(a)\r\n\n", "g(\r\n    a,\r\n    '''\r\n''')\r\n\n"),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_new_lines_end_as_the_line_of_the_match(before: str, after: str, line_end: str) -> None:
    """In a file with CRLF, the new lines had LF. The last line takes the end of the line before it."""
    fix = "g(\n    $A,\n    '''\n''')".replace("\n", line_end)
    assert edited("python", "f($A)", fix, before) == after


@pytest.mark.parametrize(
    ("language", "pattern", "fix", "text", "line"),
    [
        ("python", "if $A: $$$B", "if $A:\n        x()\n    $$$B", "if a:\n    b()\n", 3),  # tree-sitter accepts it
        ("python", "f($A)", "g($A", "x = 1\nf(a)\n", 2),
        (
            "python",
            "if $A: $$$B\nelse: $$$C",
            "if $A:\n    $$$C\nelse:\n    $$$B",
            "if a:\n    b\nelif c:\n    d\nelse:\n    e\n",
            5,
        ),
        ("javascript", "if ($A) { $$$B }", "f($A)", "if (a) { b } else { c }", 1),
        ("javascript", "if ($A) { $$$B }", "if ($A { $$$B }", "if (a) { b }\n", 1),  # a token that is missing
        ("rust", "$A.unwrap()", "match $A {", "fn f() { a.unwrap(); }", 1),
        ("json", "1", "1,", "[1]", 1),
    ],
)
def test_line_that_would_not_parse_is_told(language: str, pattern: str, fix: str, text: str, line: int) -> None:
    """The new text of a file was not parsed."""
    assert search(pattern, language, fix, text.encode())["broken_line"] == line


HTML = "<p>f(1) it's <?xml f(2) ?></p>"


@pytest.mark.parametrize(
    ("pattern", "fix", "before", "after"),
    [
        ("f($A)", "g($A)", f"{HTML}\n", f"{HTML}\n"),
        ("f($A)", "g($A)", f"<?php f(3); ?>{HTML}<?php f(4); ?>{HTML}", f"<?php g(3); ?>{HTML}<?php g(4); ?>{HTML}"),
        ("f($A)", "g($A)", f"{HTML}<?= f(3) ?>{HTML}<?PHP\nf(4)", f"{HTML}<?= g(3) ?>{HTML}<?PHP\ng(4)"),
        ("f($A);", "g($A);", f"<?= f(3)?>{HTML}<?php f(4); f(5)\n?>", f"<?= g(3);?>{HTML}<?php g(4); g(5);?>"),
        ("f($A)", "g($A)", f"<?php f('?>'); // it's ?>{HTML}<?php f(4)", f"<?php g('?>'); // it's ?>{HTML}<?php g(4)"),
        ("f($A)", "g($A)", f"<?php /* ?> */ f(3) # ?>{HTML}<?php f(4)", f"<?php /* ?> */ g(3) # ?>{HTML}<?php g(4)"),
        ("f($A)", "g($A)", "<?php f(<<<'E'\n?>f(1)\n  E); f(2) ?>f(3)", "<?php g(<<<'E'\n?>f(1)\n  E); g(2) ?>f(3)"),
        ("f($A)", "g($A)", f"<?php if (f(1)) {{ ?>\u20ac{HTML}<?php }}", f"<?php if (g(1)) {{ ?>\u20ac{HTML}<?php }}"),
        ("f($A)", "g($A)", f"<?php switch ($x): ?>\n<?php case f(1): ?>{HTML}<?php endswitch ?>f(1)",
            f"<?php switch ($x): ?>\n<?php case g(1): ?>{HTML}<?php endswitch ?>f(1)"),
    ],
)  # fmt: skip
def test_html_around_php_is_neither_searched_nor_changed(pattern: str, fix: str, before: str, after: str) -> None:
    """The grammar of ast-grep reads HTML as PHP."""
    found = search(pattern, "php", fix, before.encode())
    assert (found["error_line"], found["broken_line"]) == (None, None)
    assert edited("php", pattern, fix, before) == after


def test_match_of_which_html_would_be_lost_is_not_replaced() -> None:
    text = f"<?php if ($a): ?>\n{HTML}\n<?php endif; ?>"
    ((_, _, _, edit),) = search("if ($A): $$$B endif;", "php", "f($A);", text.encode())["hits"]
    assert edit == "HTML in it would be lost"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "f(a)\nx = = 1\n"),
        ("php", "<?php f(a); x = = 1;"),
        ("javascript", "f(a)\nx = = 1"),
        ("java", "class A { void g() { f(a); x = = 1; } }"),
    ],
)
def test_file_that_is_only_partly_parsed_is_not_edited(language: str, text: str) -> None:
    found = search("f($A)", language, "g($A)", text.encode())
    assert found["error_line"] is not None
    assert [edit for *_, edit in found["hits"]] == [None]


def test_many_captured_nodes_in_one_line_take_no_long_time() -> None:
    """Ast-grep counts the characters of a line for each position, so few positions are asked for."""
    text = "f(" + "a, " * 20_000 + "b)\n"
    assert edited("python", "f($$$A)", "g($$$A)", text) == text.replace("f(", "g(")
    assert edited("python", "f($$$)", "g()", text) == "g()\n"
