# SPDX-License-Identifier: MIT
"""Includes, functions and calls of C files are found."""

from __future__ import annotations

import csource
import pytest


@pytest.mark.parametrize(
    ("text", "blanked"),
    [
        ("a /* b */ c", "a         c"),
        ("a // b\nc", "a     \nc"),
        ("/* x\ny */z", "    \n    z"),
        ('f("g(\\"")', 'f("    ")'),
        ("'\"' + a", "' ' + a"),
        ('"/*" b "*/"', '"  " b "  "'),
        ("/* it's */ b /* isn't */", " " * 10 + " b " + " " * 11),
    ],
)
def test_blanks_comments_and_strings_and_keeps_lines_and_columns(text: str, blanked: str) -> None:
    assert csource.blank(text) == blanked


def test_finds_includes_but_not_those_in_comments() -> None:
    text = (
        '#include "base/a.h"\n/* #include "base/b.h"\n#include "base/c.h" */\n#include <stdio.h>\n'
    )
    assert csource.includes(text) == [
        csource.Include(1, "base/a.h", True),
        csource.Include(4, "stdio.h", False),
    ]


FUNCTIONS = """\
struct point {
    int x;
};

static int first(int a)
{
    if (a) {
        for (;;)
            while (a)
                a--;
    } else if (a > 1) {
        do {
            a++;
        } while (a);
    }
    return a;
}

__attribute__((noinline)) void second(
    void (*callback)(int))
{
    /* if (commented) */
    callback(1);
}
"""


def test_measures_functions() -> None:
    first, second = csource.functions(FUNCTIONS)
    assert first == csource.Function("first", 6, 12, 3, 9)
    assert (second.name, second.line, second.length, second.depth) == ("second", 21, 4, 0)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x = read(fd);", [1]),
        ("\nread (fd);", [2]),
        ("site_read(fd);", []),
        ("reader(fd);", []),
        ("s.read(fd); s->read(fd);", []),
        ('"read(" /* read() */', []),
        ("if (read(a) || read(b))", [1, 1]),
    ],
)
def test_finds_calls_by_their_whole_name(text: str, lines: list[int]) -> None:
    assert list(csource.calls(text, "read")) == lines
