"""Ordinary patterns of ast-grep in 23 languages, each language with a source in which all of its patterns match."""

ORDINARY: dict[str, tuple[str, tuple[str, ...]]] = {
    "bash": (
        """\
if [ -f "$1" ]; then
  echo found
fi
for x in a b; do
  echo "$x"
done
run() { echo hi; }
cat a | grep b
""",
        (
            "if $C; then $$$B; fi",
            "echo $A",
            "$A | $B",
        ),
    ),
    "c": (
        """\
#include <a.h>
int add(int a, int b) { return a + b; }
void g(void) {
  if (a) { b(); }
  for (i = 0; i < n; i++) { c(i); }
  while (a) { b(); }
  p->x = malloc(3);
}
""",
        (
            "if ($C) { $$$B }",
            "for ($I; $C; $N) { $$$B }",
            "while ($C) { $$$B }",
            "return $A;",
            "$P->$F = $V",
            "$A + $B",
        ),
    ),
    "cpp": (
        """\
class Shop { int a; };
void f() {
  for (auto x : xs) { g(x); }
  try { a(); } catch (const E& e) { b(); }
  auto p = new Shop(1);
  if (a) { b(); } else { c(); }
}
""",
        (
            "try { $$$A } catch ($$$E) { $$$B }",
            "new $T($$$A)",
            "if ($C) { $$$A } else { $$$B }",
        ),
    ),
    "csharp": (
        """\
class Shop {
  int Size() { return a + b; }
  void F() {
    if (a) { b(); }
    foreach (var x in xs) { g(x); }
    try { a(); } catch (E e) { b(); }
    var y = new E();
    c = d;
  }
}
""",
        (
            "class $A { $$$ }",
            "try { $$$A } catch ($E $N) { $$$B }",
            "$F($$$A)",
            "return $A;",
            "new $T()",
        ),
    ),
    "css": (
        """\
a { color: red; }
.b { margin: 0; }
@media print { a { color: blue; } }
""",
        (
            "a { $$$ }",
            "$A { $$$B }",
            "@media $A { $$$B }",
            ".b { $$$ }",
        ),
    ),
    "dart": (
        """\
class Shop { int a = 1; }
void f() {
  if (a) { b(); }
  print(a);
  for (var x in xs) { g(x); }
}
""",
        ("class $A { $$$ }",),
    ),
    "elixir": (
        """\
defmodule Shop do
  def add(a, b) do
    a + b
  end
  x |> f()
  if a do
    b
  end
end
""",
        (
            "defmodule $A do $$$B end",
            "def $F($$$A) do $$$B end",
            "$A |> $B",
            "if $C do $$$B end",
        ),
    ),
    "go": (
        """\
package a

import "fmt"

type Shop struct { A int }

func f(a int) error {
\tif err != nil { return err }
\tfor _, x := range xs { g(x) }
\tx := f(1)
\tdefer g()
\treturn nil
}
""",
        (
            "import $A",
            "if $C { $$$B }",
            "func $F($$$A) $R { $$$B }",
            "for _, $X := range $Y { $$$B }",
            "$A := $B",
            "defer $F()",
            "type $A struct { $$$ }",
        ),
    ),
    "haskell": (
        """\
f x = x + 1
g = map f [1]
""",
        (
            "$A + $B",
            "map $F $X",
            "$F $X = $B",
        ),
    ),
    "hcl": (
        """\
resource "a" "b" {
  name = "c"
}

variable "x" {
  default = 1
}
""",
        (
            "name = $A",
            "$A = 1",
        ),
    ),
    "java": (
        """\
class Shop {
  int size(int a) {
    if (a) { b(); }
    for (String x : xs) { g(x); }
    try { a(); } catch (E e) { b(); }
    while (a) { b(); }
    throw new E(a);
  }
}
""",
        (
            "if ($C) { $$$B }",
            "class $A { $$$ }",
            "try { $$$A } catch ($E $N) { $$$B }",
            "for ($T $X : $Y) { $$$B }",
            "while ($C) { $$$B }",
            "throw new $E($$$A);",
        ),
    ),
    "javascript": (
        """\
import { a } from 'b';
class Shop { f() { return 1; } }
async function g(a) { await h(a); }
if (a) { b(); } else { c(); }
try { a(); } catch (e) { b(); }
const x = a => a;
""",
        (
            "import { $A } from $B",
            "class $A { $$$ }",
            "if ($C) { $$$A } else { $$$B }",
            "try { $$$A } catch ($E) { $$$B }",
            "const $A = $B",
        ),
    ),
    "json": (
        """\
{"a": 1}
""",
        (
            '{"a": $A}',
            "$A",
        ),
    ),
    "kotlin": (
        """\
class Shop { val a = 1 }
fun add(a: Int): Int { return a }
fun f() {
  if (a) { b() }
  for (x in xs) { g(x) }
  try { a() } catch (e: E) { b() }
}
""",
        (
            "class $A { $$$ }",
            "if ($C) { $$$B }",
            "for ($X in $Y) { $$$B }",
            "try { $$$A } catch ($E: $T) { $$$B }",
        ),
    ),
    "lua": (
        """\
local a = 1
function f(x) return x end
if a then b() end
for i = 1, 10 do g(i) end
""",
        (
            "if $C then $$$B end",
            "function $F($$$A) $$$B end",
            "local $A = $B",
            "for $I = $A, $B do $$$C end",
        ),
    ),
    "php": (
        """\
<?php
function f($a) { return $a; }
class Shop { public $a; }
if ($a) { b(); }
foreach ($xs as $x) { g($x); }
echo $a;
$x = f(1);
""",
        (
            "if ($C) { $$$B }",
            "class $A { $$$ }",
            "foreach ($A as $B) { $$$C }",
            "function $F($$$A) { $$$B }",
            "echo $A;",
        ),
    ),
    "python": (
        """\
import os
class Shop(Base):
    a = 1
def f(a):
    return a
if a:
    b()
with open(x) as y:
    z()
try:
    a()
except E as e:
    b()
""",
        (
            "import $A",
            "class $A($B): $$$C",
            "def $F($$$A): $$$B",
            "if $C: $$$B",
            "with $A as $B: $$$C",
        ),
    ),
    "ruby": (
        """\
class Shop
  def add(a)
    a + 1
  end
end
if a
  b
end
xs.each do |x|
  g(x)
end
""",
        (
            "def $F($A) $$$B end",
            "$A.each do |$X| $$$B end",
            "$A + $B",
        ),
    ),
    "rust": (
        """\
use a::b;
struct Shop { a: u8 }
fn add(a: u8) -> u8 { a + 1 }
fn f() {
  match a { B => c(), _ => d() }
  if a { b(); }
  for x in xs { g(x); }
  let y = h.unwrap();
}
""",
        (
            "match $A { $$$B }",
            "if $C { $$$B }",
            "for $X in $Y { $$$B }",
            "struct $A { $$$ }",
            "fn $F($$$A) -> $R { $$$B }",
            "use $A;",
        ),
    ),
    "scala": (
        """\
class Shop { val a = 1 }
object A { def f(x: Int): Int = { x + 1 } }
object B { def g() = { if (a) { b() }; x match { case 1 => c } } }
""",
        (
            "class $A { $$$ }",
            "object $A { $$$ }",
            "if ($C) { $$$B }",
            "$A match { $$$B }",
        ),
    ),
    "swift": (
        """\
class Shop { var a = 1 }
func add(a: Int) -> Int { return a }
if a { b() }
for x in xs { g(x) }
guard a else { return }
""",
        (
            "class $A { $$$ }",
            "if $C { $$$B }",
            "for $X in $Y { $$$B }",
            "guard $A else { $$$B }",
        ),
    ),
    "tsx": (
        """\
const a = <Shop size={1}>b</Shop>;
interface Item { a: string }
if (a) { b(); }
""",
        (
            "<$A $$$B>$$$C</$A>",
            "interface $A { $$$ }",
            "if ($C) { $$$B }",
        ),
    ),
    "typescript": (
        """\
interface Item { a: string }
enum B { C }
class Shop { a: number = 1 }
type T = A | B;
let x = a as T;
""",
        (
            "interface $A { $$$ }",
            "enum $A { $$$ }",
            "class $A { $$$ }",
            "type $A = $B",
            "$A as $B",
        ),
    ),
}
