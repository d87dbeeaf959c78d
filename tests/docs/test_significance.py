"""Which changes of a source file can matter to its documentation, told without a model."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from labelled_diffs import labelled
from matrices import examples, for_each

from quaid.docs.significance import compare

FIRST = ("python", "typescript", "go", "rust", "java")
ENDINGS = """py pyi js ts tsx json jsonc go rs java c h cpp cs kt scala swift groovy dart php rb ex sh lua sql css scss html vue
    proto graphql tf hs yml mk r cmake ini toml md rst txt svg dockerfile unknown""".split()  # noqa: SIM905


def compared(path, before, after):
    return compare(path, before.encode(), after.encode())


def is_trivial(path, before, after):
    return compared(path, before, after)[0]


def table(changes):
    rows = [(change, *compare(change.path, change.before, change.after)) for change in changes]
    lines = [
        f"{'' if is_trivial == change.is_trivial else 'WRONG':6}{change.path:50.50} "
        f"{'trivial' if change.is_trivial else 'significant':12} {change.what} -> {why}"
        for change, is_trivial, why in rows
    ]
    kept = [not is_trivial for change, is_trivial, _ in rows if not change.is_trivial]
    dropped = [is_trivial for change, is_trivial, _ in rows if change.is_trivial]
    summary = f"kept {sum(kept)} of {len(kept)} significant, dropped {sum(dropped)} of {len(dropped)} trivial"
    return kept, dropped, "\n".join(["", *lines, summary])


def test_of_sixty_changes_all_significant_are_kept_and_what_python_reads_alike_is_dropped():
    kept, dropped, shown = table([change for name in FIRST for change in labelled(name)])
    assert len(kept) == len(dropped) == 30
    assert (sum(kept), sum(dropped)) == (30, 2), shown


@pytest.mark.parametrize("name", FIRST)
def test_each_language_has_six_changes_of_both_kinds(name):
    changes = labelled(name)
    assert [sum(change.is_trivial for change in changes), len(changes)] == [6, 12]


def test_in_other_languages_all_significant_changes_are_kept():
    kept, dropped, shown = table(labelled("others"))
    assert (sum(kept), len(kept), sum(dropped), len(dropped)) == (21, 21, 0, 15), shown


@for_each("change", [change for name in (*FIRST, "others") for change in labelled(name)])
def test_line_ends_bom_and_direction_change_no_comparison(change):
    found = compare(change.path, change.before, change.after)
    assert compare(change.path, change.after, change.before)[0] == found[0]
    windows = b"\xef\xbb\xbf" + change.after.replace(b"\n", b"\r\n")
    assert compare(change.path, change.before, windows)[0] == found[0]
    assert compare(change.path, change.after, windows)[0]


@for_each(("path", "before", "after"), [
    ("a.py", "x = [1, 2]\n", "x = [\n    1,\n    2,\n]\n"),
    ("a.py", "x = 'a' 'b'\n", 'x = "ab"\n'),
    ("a.py", "def f():\n    '''One.'''\n", 'def f():\n    """One."""  # two\n'),
    ("a.py", "x = 1  # noqa\n", "x = 1\n"),
    ("LICENSE", "a  \n\n\nb\r\n", "a\nb"),
    ("a.go", "\n\n  f(a)\n \n\tg(b)\t", "  f(a)\n\tg(b)\n\n"),
    ("package-lock.json", '{"a": 1}', '{"a": 2}'),
    ("lib/x.min.js", "a()", "b()"),
    ("a.md", "One two\nthree.\n\n- a\n", "One\ntwo three.\n\n\n- a\n"),
])  # fmt: skip
def test_it_says_the_same(path, before, after):
    assert compared(path, before, after)[0]
    assert compared(path, after, before)[0]


# What only a reader of every language would see, or who knows what a program does with its text.
@for_each(("path", "before", "after"), [
    ("a.py", "# python 2\nprint x\n", "print x\n"),
    ("a.py", "from a import b\nimport c\n", "import c\nfrom a import b\n"),
    ("a.py", "def f(a=1): return a\ndef g(): return f()\n", "def g(): return f()\ndef f(a=1): return a\n"),
    ("a.py", "from a import b, c\n", "from a import b\nfrom a import c\n"),
    ("a.ts", "f(a, b)\n", "f(\n  a,\n  b,\n)\n"),
    ("a.ts", "a = b / c; // d / e\n", "a = b / c;\n"),
    ("a.ts", "const s = 'it\\'s'\n", 'const s = "it\'s"\n'),
    ("a.js", "/*! v1 */\na()\n", "/*! v2 */\na()\n"),
    ("a.tsx", "x = <p a='b'>c</p>\n", 'x = <p\n  a="b"\n>\n  c\n</p>\n'),
    ("a.go", "a() // b\n", "a()\n"),
    ("a.go", 'import (\n"a"\n"b"\n)\n', 'import (\n"b"\n"a"\n)\n'),
    ("a.rs", "fn f<'a>(x: &'a str) {} // it's\n", "fn f<'a>(x: &'a str) {}\n"),
    ("a.c", "#define A  1\n", "#define A 1\n"),
    ("a.sh", "a\n", "# c\na\n"),
    ("a.css", "/* d */\na { b: c; }\n", "a { b: c; }\n"),
    ("a.html", "<p>\n<!-- b -->\nc</p>", "<p>\nc</p>"),
    ("a.lua", "-- c\nx = 1\n", "x = 1\n"),
    ("Makefile", "# a\nb: c\n\td\n", "b: c\n\td\n"),
    ("Dockerfile.dev", "FROM a\n# b\nRUN c\n", "FROM a\nRUN c\n"),
    ("tsconfig.json", '{"a": 1, // one\n}', '{\n"a": 1\n}'),
])  # fmt: skip
def test_what_says_the_same_in_another_order_or_style_or_with_a_comment_is_significant(path, before, after):
    assert not is_trivial(path, before, after)
    assert not is_trivial(path, after, before)


# Texts that a program shows to its users, or to a model.
@for_each("source", [
    'import click\n\n@click.command()\ndef push(force):\n    """Push{}."""\n',
    'import typer\napp = typer.Typer()\n\n@app.command()\ndef push():\n    """Push{}."""\n    run()\n',
    '"""Push{}."""\nimport argparse\nparser = argparse.ArgumentParser(description=__doc__)\n',
    'from mcp.server.fastmcp import FastMCP\nmcp = FastMCP("a")\n\n@mcp.tool()\ndef push():\n    """Push{}."""\n',
    'from fastapi import FastAPI\napp = FastAPI()\n\n@app.get("/")\nasync def push():\n    """Push{}."""\n',
    'import pydantic\n\nclass Push(pydantic.BaseModel):\n    """Push{}."""\n\n    force: bool\n    """Whether."""\n',
    'class Push:\n    force = True\n    """Push{}."""\n',
    "class Push:\n    force = True  #: Push{}.\n",
])  # fmt: skip
def test_a_changed_docstring_is_significant(source):
    before, after = source.format(" what is committed"), source.format(" what is committed, unless it is pushed")
    ast.parse(after)
    assert not is_trivial("a.py", before, after)
    assert is_trivial("a.py", after, f"# pushes\n\n{after}")


@for_each(("path", "before", "after"), [
    ("a.py", "x = 1\n", "x = 1.0\n"),
    ("a.py", "x = (1,)\n", "x = (1)\n"),
    ("a.py", "#!/bin/python2\n", "#!/bin/python3\n"),
    ("a.py", "from a import *\nfrom b import *\n", "from b import *\nfrom a import *\n"),
    ("a.py", "import a as x\nimport b as x\n", "import b as x\nimport a as x\n"),
    ("a.py", "def f(): return 1\ndef f(): return 2\n", "def f(): return 2\ndef f(): return 1\n"),
    ("a.py", "@route('a')\ndef f(): 0\n@route('b')\ndef g(): 0\n", "@route('b')\ndef g(): 0\n@route('a')\ndef f(): 0\n"),
    ("a.py", "if x:\n  print y\n  z\n", "if x:\n  print y\nz\n"),
    ("a.py", "x = 'a' # b\n", "x = 'a # b'\n"),
    ("a.ts", "return x\n", "return\nx\n"),
    ("a.ts", "while (a);\nb()\n", "while (a)\nb()\n"),
    ("a.ts", "for (;a;) {}\n", "for (a;;) {}\n"),
    ("a.ts", "a = b++ + c\n", "a = b + ++c\n"),
    ("a.ts", 'import "a"\nimport "b"\n', 'import "b"\nimport "a"\n'),
    ("a.ts", "x = [,]\n", "x = []\n"),
    ("a.ts", "import { a as b } from 'c'\n", "import { b as a } from 'c'\n"),
    ("a.ts", "x = `a ${b ? `//c` : d}`\n", "x = `a ${b ? `//e` : d}`\n"),
    ("a.ts", "x = a.replace(/\\/*/g, b) // c */ d\n", "x = a.replace(/\\/*/g, e) // c */ d\n"),
    ("a.tsx", "x = <p>\n  see // a\n</p>\n", "x = <p>\n  see // b\n</p>\n"),
    ("a.tsx", "x = <p>Don't {a /* b */} 'c'</p>\n", "x = <p>Don't {d /* b */} 'c'</p>\n"),
    ("a.go", 'package a\n\n// #define A 1\nimport "C"\n', 'package a\n\n// #define A 2\nimport "C"\n'),
    ("a.rs", "let x = (1,);\n", "let x = (1);\n"),
    ("a.rs", "fn f() { x; }\n", "fn f() { x }\n"),
    ("a.rs", "#[cfg(a)]\nuse b;\nuse c;\n", "#[cfg(a)]\nuse c;\nuse b;\n"),
    ("a.rs", "/* a /* b */ c */ d\n", "/* a /* b */ c */ e\n"),
    ("a.c", "#define A (x)\n", "#define A(x)\n"),
    ("a.c", "#define A 1\nB\n", "#define A 1 B\n"),
    ("a.c", "/* open\nint a;\n", "/* open\nint b;\n"),
    ("a.sh", "rm x{,.bak}\n", "rm x{.bak}\n"),
    ("a.sh", "a=b\n", "a= b\n"),
    ("a.sh", "echo ${#a} $#\n", "echo ${#b} $#\n"),
    ("a.yml", "a:\n  b: 1\n", "a:\nb: 1\n"),
    ("a.yml", "a: |\n  # b\nc: d\n", "a: |\n  # e\nc: d\n"),
    ("a.yml", "a: b#c\n", "a: b#d\n"),
    ("Makefile", "a:\n\tb\n", "a:\n    b\n"),
    ("a.hs", "{-# LANGUAGE A #-}\n", "{-# LANGUAGE B #-}\n"),
    ("a.sql", "-- name: GetUser :one\nselect 1;\n", "-- name: GetUser :many\nselect 1;\n"),
    ("a.php", "a // b\n<?php c(); ?>\n// d\n", "a // e\n<?php c(); ?>\n// d\n"),
    ("a.json", '{"a": 1}', '{"a": true}'),
    ("a.json", '{"a": [1, 2]}', '{"a": [2, 1]}'),
    ("package.json", '{"exports": {"import": 1, "default": 2}}', '{"exports": {"default": 2, "import": 1}}'),
    ("a.toml", "a = 2026-01-01\n", "a = '2026-01-01'\n"),
    ("a.md", "One two.\n", "One too.\n"),
    ("a.md", "```\na\n  b\n```\n", "```\na\nb\n```\n"),
    ("a.md", "a\n\nb\n", "a\nb\n"),
    ("requirements.txt", "a\nb\n", "a b\n"),
    ("LICENSE", "a  b", "a b"),
    ("logo.png", "a\0b", "a\0c"),
])  # fmt: skip
def test_it_does_not_say_the_same(path, before, after):
    assert not compared(path, before, after)[0]
    assert not compared(path, after, before)[0]


# What is read by somebody else than people, and text that is easily taken for a comment or for formatting.
@for_each(("path", "before", "after"), [
    ("a.sh", "cat <<\\EOF\n# one\nEOF\n", "cat <<\\EOF\n# two\nEOF\n"),
    ("a.sh", "cat <<SQL\nSQL is:\n# one\nSQL\n", "cat <<SQL\nSQL is:\n# two\nSQL\n"),
    ("a.sh", "cat <<EOF\n  EOF\n# one\nEOF\n", "cat <<EOF\n  EOF\n# two\nEOF\n"),
    ("a.sh", "cat <<'A-B'\nA b\n# one\nA-B\n", "cat <<'A-B'\nA b\n# two\nA-B\n"),
    ("a.sh", "cat << '!'\n# one\n!\n", "cat << '!'\n# two\n!\n"),
    ("a.sh", "u=$(base)#one\n", "u=$(base)#two\n"),
    ("a.sh", 'n="${l%% #*}" one\n', 'n="${l%% #;}" one\n'),
    ("a.sh", "n=${l%% #*}\n", "n=${l%% #;}\n"),
    ("a.sh", "touch a\\ #1\n", "touch a\\ #2\n"),
    ("a.zsh", "ls *(#qN)\n", "ls *(#qD)\n"),
    ("a.rb", "a = %w[ one #two ]\n", "a = %w[ one #three ]\n"),
    ("a.rb", "# encoding: ascii-8bit\nA='é'\n", "# encoding: utf-8\nA='é'\n"),
    ("a.swift", 'let x = #"a  b"#\n', 'let x = #"a b"#\n'),
    ("a.dart", "var x = r'a  b';\n", "var x = r'a b';\n"),
    ("a.r", 'x <- "a\n# one\n"\n', 'x <- "a\n# two\n"\n'),
    ("a.cs", 'var a = $"""\n  // one\n  """;\n', 'var a = $"""\n  // two\n  """;\n'),
    ("a.rs", 'if c == b\'"\' { x("// one") }\n', 'if c == b\'"\' { x("// two") }\n'),
    ("a.cpp", 'f(L\'"\', "// one");\n', 'f(L\'"\', "// two");\n'),
    ("a.scss", "a { b: url(//x/a.png) }\n", "a { b: url(//x/b.png) }\n"),
    ("a.html", "<pre>a\nb</pre>", "<pre>a b</pre>"),
    ("a.html", '<input value="a  b">', '<input value="a b">'),
    ("a.vue", '<script>\nlet a = "x  y"\n</script>', '<script>\nlet a = "x y"\n</script>'),
    ("a.html", "<!-- ko if: a -->b", "<!-- ko if: c -->b"),
    ("a.tsx", "x = <p>{a} // one</p>\n", "x = <p>{a} // two</p>\n"),
    ("a.tsx", "x = <p>\n  // one\n</p>\n", "x = <p>\n  // two\n</p>\n"),
    ("a.js", "x = <p>see // one</p>\n", "x = <p>see // two</p>\n"),
    ("a.js", "if (a) /^h:\\/\\//.test(b) && one()\n", "if (a) /^h:\\/\\//.test(b) && two()\n"),
    ("a.js", 's.replace(/>/g, "file:///one")\n', 's.replace(/>/g, "file:///two")\n'),
    ("a.py", 'x = f"{d["#one"]}"\n', 'x = f"{d["#two"]}"\n'),
    (
        "a.py",
        '# /// script\n# dependencies = ["a"]\n# ///\nx = 1\n',
        '# /// script\n# dependencies = ["b"]\n# ///\nx = 1\n',
    ),
    ("a.py", '# coding: latin-1\nx = "é"\n', '# coding: utf-8\nx = "é"\n'),
    ("a.yml", "a: b\n\n  c\n", "a: b\n  c\n"),
    ("a.yml", "a: echo b  c\n", "a: echo b c\n"),
    ("a.yml", "# {{- if .a }}\nb: c\n# {{- end }}\n", "b: c\n"),
    ("a.yml", "#cloud-config\nb: c\n", "b: c\n"),
    ("a.py", "# {% if a %}\nb()\n# {% endif %}\n", "b()\n"),
    ("a.txt", "a\0b", "a\0c"),
    (".env", 'A="x  y"\n', 'A="x y"\n'),
    ("Dockerfile", 'RUN echo "a  b"\n', 'RUN echo "a b"\n'),
    ("a.ini", "a = b  c\n", "a = b c\n"),
    ("Makefile", "a = b \\\n\nc = d\n", "a = b \\\nc = d\n"),
    ("Makefile", "a = b \\ \nc = d\n", "a = b \\\nc = d\n"),
    ("a.c", "#define A 1 \\\n\nint b;\n", "#define A 1 \\\nint b;\n"),
    ("a.scala", "if a then\n  b()\n  c()\n", "if a then\n  b()\nc()\n"),
    ("a.m", "a = [1 2\n3 4];\n", "a = [1 2 3 4];\n"),
    ("a.glsl", "#define A 1\nB\n", "#define A 1 B\n"),
    ("a.rs", "let (a,) = b;\n", "let (a) = b;\n"),
    ("a.sql", "select q'[it's -- one]' from a;\n", "select q'[it's -- two]' from a;\n"),
    (
        "a.sql",
        "--liquibase formatted sql\n--changeset a:1\nx;\n--rollback drop a;\n",
        "--liquibase formatted sql\n--changeset a:1\nx;\n--rollback drop b;\n",
    ),
    ("a.sql", "-- {{ ref('a') }}\nselect 1", "-- {{ ref('b') }}\nselect 1"),
    (
        "a.go",
        "type A struct {\n\t// +kubebuilder:validation:Minimum=1\n\tB int\n}\n",
        "type A struct {\n\t// +kubebuilder:validation:Minimum=2\n\tB int\n}\n",
    ),
    ("a.rst", "::\n\n   if a:\n       b\n   c\n", "::\n\n   if a:\n       b\n       c\n"),
    ("a.adoc", "----\na\nb\n----\n", "----\na b\n----\n"),
    ("a.md", "---\na:\n  b: c\n---\nx\n", "---\na:\nb: c\n---\nx\n"),
    ("a.js", "import('a')\nimport('b')\n", "import('b')\nimport('a')\n"),
    ("a.js", "a = b\n[c] = d\n", "a = b;\n[c] = d\n"),
    ("a.js", "a = b\n`x`\n", "a = b;\n`x`\n"),
    ("a.js", "a = b\n-c\n", "a = b;\n-c\n"),
    ("a.js", "a = b\n/c/g.d()\n", "a = b;\n/c/g.d()\n"),
    ("a.dart", "// @dart=2.9\nx();\n", "// @dart=2.12\nx();\n"),
    ("a.java", "//DEPS a:b:1\nclass A {}\n", "//DEPS a:b:2\nclass A {}\n"),
    (
        "a.php",
        "<?php\n/*\n * Plugin Name: A\n * Requires PHP: 7\n */\n",
        "<?php\n/*\n * Plugin Name: A\n * Requires PHP: 8\n */\n",
    ),
    ("a.properties", "a = b,\\\n  #one\n", "a = b,\\\n  #two\n"),
    ("a.py", "def f():\n    '''a'''\n    return f.__doc__\n", "def f():\n    '''b'''\n    return f.__doc__\n"),
    ("a.js", "x = yield /'/; c('// one')\n", "x = yield /'/; c('// two')\n"),
    ("a.js", "export default /'/; c('// one')\n", "export default /'/; c('// two')\n"),
    ("a.rb", 'x = ?"\ny = " # one"\n', 'x = ?"\ny = " # two"\n'),
    ("a.rb", "x = %r~ # one~\n", "x = %r~ # two~\n"),
    ("a.c", 'a = \'ab"\'; f("// one");\n', 'a = \'ab"\'; f("// two");\n'),
    ("a.js", "return {\n}\n", "return\n{\n}\n"),
    ("a.js", "a = b;\n(c)\n", "a = b\n(c)\n"),
    ("a.jsx", "/** @jsxImportSource a */\nb\n", "/** @jsxImportSource c */\nb\n"),
    ("a.js", 'import(/* webpackChunkName: "a" */ "b")\n', 'import(/* webpackChunkName: "c" */ "b")\n'),
    ("a.c", "int a;\n// b \\\nint c;\n", "int a;\n// b\nint c;\n"),
    ("a.tsx", "x = <p>{a} {b}</p>\n", "x = <p>{a}{b}</p>\n"),
    ("a.tsx", "x = <p>a <b>c</b> - (d,)</p>\n", "x = <p>a <b>c</b> - (d)</p>\n"),
    ("a.tsx", "x = <a><b>c</b> d</a>\n", "x = <a><b>c</b>d</a>\n"),
    ("a.tsx", "return <p>a</p>\n", "return\n<p>a</p>\n"),
    ("a.tsx", "x = a && (<b/> || <c/>)\n", "x = a && <b/> || <c/>\n"),
    ("a.tsx", "x = (<a/> || <b/>) && c\n", "x = <a/> || <b/> && c\n"),
    ("a.yml", "a: 'it''s #b'\n", "a: 'it''s #c'\n"),
    ("a.sh", "echo a\\\n#one\n", "echo a\\\n#two\n"),
    ("Dockerfile", "RUN echo a\\\nb\n", "RUN echo a b\n"),
    ("a.properties", "a = b\\\n  c\n", "a = b \\\n  c\n"),
    ("Makefile", "a: b ## One\n\tc\n", "a: b ## Two\n\tc\n"),
    ("Makefile", "define A\n# one\nendef\n", "define A\n# two\nendef\n"),
    ("a.vue", '<style lang="sass">\na\n  b\n</style>', '<style lang="sass">\na\nb\n</style>'),
    ("a.html", '<p style="white-space: pre">a\n b</p>', '<p style="white-space: pre">a b</p>'),
    ("a.go", "// @Router /a [get]\nfunc a() {}\n", "// @Router /b [get]\nfunc a() {}\n"),
    ("a.js", "/**\n * @openapi\n * /a:\n */\nb()\n", "/**\n * @openapi\n * /c:\n */\nb()\n"),
])  # fmt: skip
def test_a_tool_or_a_reader_would_see_the_difference(path, before, after):
    assert not is_trivial(path, before, after)
    assert not is_trivial(path, after, before)


@for_each(("path", "content", "trivial"), [
    ("a/__init__.py", b"", True),
    ("a.py", b"# only a remark\n", True),
    ("a.py", b'"""Only words."""\n', False),
    ("a.go", b"\n \n", True),
    ("a.go", b"// nothing yet\n", False),
    ("a.py", b"x = 1\n", False),
    ("poetry.lock", b"a", False),
    ("a.png", b"\x89PNG\0", False),
    ("a.md", b"words\n", False),
])  # fmt: skip
def test_a_file_that_comes_or_goes_matters_when_it_holds_something(path, content, trivial):
    added, deleted = compare(path, None, content), compare(path, content, None)
    assert (added[0], deleted[0]) == (trivial, trivial)
    assert added[1].startswith("added")
    assert deleted[1].startswith("deleted")
    assert compare(path, content, content)[0]
    assert compare(path, None, None)[0]


def test_a_reason_is_given():
    reasons = {
        ("a.py", "x = 1\n", "x = 1 # y\n"): "only comments or formatting",
        ("a.py", "x = 1\n", "\n\nx = 1\n"): "only white space",
        ("a.py", "'a'\nx = 1\n", "'b'\nx = 1\n"): "content",
        ("a.go", "a() // b\n", "a()\n"): "content",
        ("a.json", "1", "2"): "content",
        ("a.bin", "a\0", "b\0"): "binary",
    }
    assert {change: compared(*change)[1] for change in reasons} == reasons


@for_each("ending", ENDINGS)
def test_every_language_can_be_read(ending):
    source = 'a(1, "b")\n'
    found = compared(f"x.{ending}", source, source.replace("1", "2"))
    assert found == (False, "content")


# What would take the square of its length, or more calls than Python allows, were it read carelessly.
HOSTILE = [
    ("a.go", " " * 59_999 + "x"),
    ("a.go", "\\ "),
    ("a.py", "#"),
    ("a.py", "# coding"),
    ("a.py", "# /// a\n"),
    ("a.js", '`${#{~r/--[["'),
    ("a.js", "= /["),
    ("a.ts", '\\"'),
    ("a.java", "a "),
    ("a.rs", 'r#"'),
    ("a.rs", "/*"),
    ("a.sh", "<<E\n"),
    ("a.rb", "%w("),
    ("a.kt", '"${'),
    ("a.yml", ": |\n "),
    ("a.toml", "x."),
    ("a.json", "["),
    ("a.py", "("),
    ("a.py", "x.a\n .b"),
    ("a.py", "not "),
    ("a.html", "<!--"),
    ("a.md", "```\n~~~\n"),
    ("a.sql", "$a$"),
    ("a.c", "\\\n"),
    ("a.tsx", "=(<a>{=(<b/>)}</a>)"),
    ("Makefile", "define a\n"),
    ("a.cpp", 'R"('),
    ("a.cs", '$"{"'),
    ("a.yml", "{a: "),
    ("a.yml", "a: &a [*a]\n"),
    ("a.ts", "/ "),
    ("a.php", '"{$'),
]


@for_each(("path", "piece"), HOSTILE)
def test_no_text_is_too_much(path, piece):
    content = (piece * (60_000 // len(piece))).encode()
    assert compare(path, content, content + b"\n1 1")[0] is False
    assert compare(path, b"0 " + content, b"1 " + content)[0] is False
    assert compare(path, content, content)[0]


@pytest.mark.parametrize(
    "source", ["-" * 50_000 + "1", "x" + ".a" * 50_000, "1" + "+1" * 50_000, "lambda:" * 5_000 + "1"]
)
def test_python_that_nests_too_deep_is_compared_by_its_lines(source):
    assert not is_trivial("a.py", f"x = 1\n{source}\ny = 2", f"y = 1\n{source}\nx = 2")
    assert is_trivial("a.py", f"x = 1\n{source}\ny = 2", f"\nx = 1\n{source}\n\ny = 2")


@pytest.mark.slow
def test_of_enormous_files_only_the_lines_are_compared():
    long = b"int a = 1; \n" * 200_000
    assert compare("a.c", long, long.replace(b" \n", b"\n\n"))[0]
    assert not compare("a.yml", long + b"a:\n  b: c\n", long + b"a:\nb: c\n")[0]
    assert not compare("a.c", long, long + b"// b")[0]


contents = st.binary(max_size=300) | st.text(alphabet="a1 \n\t\"'`/*#-{}[]()<>$\\;:,=|%@~rRb", max_size=120).map(
    str.encode
)


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(ENDINGS), contents | st.none(), contents | st.none())
@example("rb", b"%w(", b"%w")
@example("py", b"\xff\xfe\x00", b"\xff\xfex")
def test_whatever_the_bytes_there_is_a_comparison(ending, before, after):
    found = compare(f"x.{ending}", before, after)
    assert found[1]
    assert found[0] or before != after


names = st.sampled_from(["alpha", "beta", "gamma", "delta"])
expressions = st.recursive(
    names | st.integers(0, 99).map(str) | st.sampled_from(['"#"', "'it''s'", "b'x'", 'f"{alpha}"', '"""a # b\n"""']),
    lambda inner: st.builds("({} + {})".format, inner, inner) | st.builds("f({}, key={})".format, inner, inner),
    max_leaves=5,
)
statements = st.builds("{} = {}".format, names, expressions) | st.builds("print({})".format, expressions)


@st.composite
def modules(draw):
    """The lines of a module, each with its depth and what stands there."""
    lines = []
    for number in range(draw(st.integers(1, 4))):
        lines.append((0, draw(st.sampled_from([f"def f{number}(alpha, beta=1):", f"class C{number}:", "if alpha:"]))))
        lines += [(1, draw(statements)) for _ in range(draw(st.integers(1, 3)))]
    return lines


def written(lines, indent):
    return "".join(f"{indent * depth}{line}\n" for depth, line in lines)


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(modules(), st.sampled_from(["  ", "\t", "        "]), st.lists(st.integers(0, 12), max_size=4))
def test_indenting_and_commenting_python_is_trivial(lines, indent, places):
    remarked = list(lines)
    for place in places:
        remarked.insert(min(place, len(lines)), (0, "# it's a 'remark\n"))
    before, after = written(lines, "    "), written(remarked, indent)
    ast.parse(after)
    assert is_trivial("a.py", before, after)


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(modules(), st.integers(0, 12))
def test_another_number_is_significant(lines, place):
    place = 1 + place % len(lines)
    before = [*lines[:place], (1, "limit = 10  # ten"), *lines[place:]]
    after = [*lines[:place], (1, "limit = 11  # ten"), *lines[place:]]
    assert not is_trivial("a.py", written(before, "    "), written(after, "  "))


def test_a_comparison_needs_nothing_heavy_and_prints_nothing():
    code = (
        "import sys; from quaid.docs.significance import compare\n"
        "compare('a.py', b'x = \"\\\\d\" is 1', b'x = (\"\\\\d\" is 1)')\n"
        "print(*[name for name in ('numpy', 'pygments', 'rich', 'mistune') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, env=os.environ, check=True
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")
