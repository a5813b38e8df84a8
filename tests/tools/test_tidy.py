# SPDX-License-Identifier: MIT
"""Each rule finds the code that breaks it, and no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import layers
import pytest
import tidy

LAYERS = "base: - pure\nhttp: base pure\nos: base\nsession: base http\nprogram: *\n"
HEAD = "/* SPDX-License-Identifier: MIT */\n"

Rule = Callable[[tidy.Tree], Iterator[tidy.Finding]]


def found(rule: Rule, files: dict[str, str]) -> list[str]:
    return [str(finding) for finding in rule(tidy.Tree({"src/LAYERS": LAYERS} | files))]


def test_a_layer_includes_what_src_layers_allows() -> None:
    files = {
        "src/base/a.h": HEAD,
        "src/os/o.h": '#include "base/a.h"\n',
        "src/http/h.c": '#include "base/a.h"\n#include "os/o.h"\n#include <stdio.h>\n',
        "src/http/t.c": '#include "os/table.def"\n',
        "src/os/table.def": "",
        "src/program/p.c": '#include "os/o.h"\n',
    }
    assert found(tidy.includes_follow_layers, files) == [
        "src/http/h.c:2: http/ may not include os/ (src/LAYERS)"
    ]


def test_an_include_names_a_file_below_src() -> None:
    files = {"src/base/a.h": HEAD, "src/base/b.c": '#include "a.h"\n'}
    assert found(tidy.includes_follow_layers, files) == [
        'src/base/b.c:1: "a.h" does not exist below src/'
    ]


def test_a_folder_of_src_is_a_layer() -> None:
    assert found(tidy.includes_follow_layers, {"src/new/a.c": ""}) == [
        "src/new/a.c:1: is in no layer of src/LAYERS"
    ]


def test_a_file_includes_its_own_header_first() -> None:
    files = {
        "src/base/a.h": HEAD,
        "src/base/a.c": '#include <stdio.h>\n#include "base/a.h"\n',
        "src/base/b.h": HEAD,
        "src/base/b.c": '#include "base/b.h"\n#include <stdio.h>\n',
        "src/base/alone.c": "#include <stdio.h>\n",
    }
    assert found(tidy.own_header_comes_first, files) == [
        'src/base/a.c:1: its own header "base/a.h" comes first'
    ]


def test_headers_have_pragma_once() -> None:
    files = {"src/base/a.h": HEAD + "#pragma once\n", "src/base/b.h": HEAD}
    assert found(tidy.headers_are_included_once, files) == [
        "src/base/b.h:1: a header needs #pragma once"
    ]


def test_every_file_of_code_names_the_licence() -> None:
    spdx = "SPDX-License-Identifier: MIT"
    files = {
        "src/base/good.c": f"/* {spdx}\n *\n */\n",
        "src/base/bad.c": f"// {spdx}\n",
        "scripts/good": f"#!/bin/sh\n# {spdx}\n",
        "scripts/bad": "#!/bin/sh\n",
        "tools/good.py": f"# {spdx}\n",
        "tools/bad.py": '"""No licence."""\n',
        "meson.build": f"# {spdx}\n",
    }
    assert found(tidy.files_name_their_licence, files) == [
        f"src/base/bad.c:1: begins with /* {spdx}",
        f"scripts/bad:1: begins with # {spdx}",
        f"tools/bad.py:1: begins with # {spdx}",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x" * 100, None),
        ("x" * 101, "101 columns; 100 at most"),
        ("a\tb", "a tab"),
        ("a ", "space at the end of the line"),
        ("/* TO" + "DO later */", "TO" + "DO: finish the work or remove the mark"),
        ('mkstemp("name-XXXXXX")', None),
    ],
)
def test_lines_are_clean(line: str, message: str | None) -> None:
    expected = [] if message is None else [f"src/base/a.c:1: {message}"]
    assert found(tidy.lines_are_clean, {"src/base/a.c": line + "\n"}) == expected


def test_the_last_line_ends() -> None:
    assert found(tidy.lines_are_clean, {"src/base/a.c": "a\nb"}) == [
        "src/base/a.c:2: the last line has no end"
    ]


def test_tables_and_prose_may_have_long_lines() -> None:
    files = {"src/base/a.def": "x" * 200 + "\n", "a.md": "x" * 200 + "\n"}
    assert found(tidy.lines_are_clean, files) == []


def function_of(lines: int) -> str:
    return "int f(void)\n{\n" + "    a();\n" * (lines - 2) + "}\n"


def test_functions_have_at_most_seventy_lines() -> None:
    files = {"src/base/a.c": function_of(70), "src/base/b.c": function_of(71)}
    assert found(tidy.files_and_functions_are_short, files) == [
        "src/base/b.c:2: f: 71 lines; 70 at most"
    ]


def test_files_have_at_most_five_hundred_lines_and_tests_a_thousand() -> None:
    files = {
        "src/base/a.c": "\n" * 500,
        "tools/b.py": "\n" * 501,
        "tests/unit/base/a_test.c": "\n" * 1000,
        "tests/unit/base/b_test.c": "\n" * 1001,
    }
    assert found(tidy.files_and_functions_are_short, files) == [
        "tests/unit/base/b_test.c:1001: 1001 lines; 1000 at most",
        "tools/b.py:501: 501 lines; 500 at most",
    ]


def nested(depth: int) -> str:
    body = "".join("    " * level + "if (a)\n" for level in range(1, depth + 1))
    return "int f(void)\n{\n" + body + "    " * (depth + 1) + "a();\n}\n"


def test_statements_are_nested_at_most_three_deep() -> None:
    files = {"src/base/a.c": nested(3), "src/base/b.c": nested(4)}
    assert found(tidy.files_and_functions_are_short, files) == [
        "src/base/b.c:6: f: nested 4 deep; 3 at most"
    ]


@pytest.mark.parametrize(
    ("path", "call", "banned"),
    [
        ("src/os/clock.c", "clock_gettime(a, b);", False),
        ("src/session/session.c", "clock_gettime(a, b);", True),
        ("src/base/buf.c", "free(a);", True),
        ("src/session/session.c", "free(a);", False),
        ("src/session/session.c", "recv(a);", True),
        ("src/os/file.c", "open(a);", False),
        ("src/os/file.c", "sprintf(a);", True),
        ("src/os/file.c", "snprintf(a);", False),
        ("src/program/main.c", "exit(1);", False),
        ("src/session/session.c", "exit(1);", True),
        ("src/session/session.c", "static_assert(1, a);", False),
        ("tests/unit/base/a_test.c", "sprintf(a);", False),
    ],
)
def test_some_calls_are_allowed_in_some_layers_only(path: str, call: str, banned: bool) -> None:
    assert bool(found(tidy.banned_calls, {path: call})) == banned


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("src/base/string_utils.c", "util"),
        ("src/common/a.c", "common"),
        ("tests/helper.h", "helper"),
        ("src/os/commonly.c", None),
        ("docs/manager.md", "manager"),
    ],
)
def test_names_have_a_meaning(path: str, message: str | None) -> None:
    expected = [] if message is None else [f"{path}:1: a name that says nothing: {message}"]
    assert found(tidy.names_say_something, {path: ""}) == expected


def test_every_file_is_built_or_included() -> None:
    files = {
        "src/base/a.c": '#include "base/a.h"\n#include "base/table.def"\n',
        "src/base/a.h": "",
        "src/base/table.def": "",
        "src/base/idle.h": "",
        "src/base/deep/lost.c": "",
        "tests/unit/base/a_test.c": '#include "check.h"\n',
        "tests/check.h": "",
        "tests/unit/base/forgotten.c": "",
    }
    assert found(tidy.nothing_lies_idle, files) == [
        "src/base/deep/lost.c:1: is neither built nor included",
        "src/base/idle.h:1: is neither built nor included",
        "tests/unit/base/forgotten.c:1: is neither built nor included",
    ]


def test_links_name_existing_files() -> None:
    files = {
        "docs/a.md": "[up](../README.md) [out](https://a.example/) [here](#there)\n[gone](b.md)\n",
        "README.md": "[room](src) [part](docs/a.md#part)\n",
    }
    assert found(tidy.links_lead_somewhere, files) == ["docs/a.md:2: b.md does not exist"]


PAGE = f"# Title\n{tidy.DIAGRAM_BEGIN}\nold\n{tidy.DIAGRAM_END}\nmore\n"


def test_the_drawing_is_replaced_between_its_marks() -> None:
    read = layers.parse(LAYERS)
    page = tidy.with_diagram(PAGE, read)
    assert layers.draw(read) in page
    assert page.startswith("# Title\n")
    assert page.endswith("\nmore\n")
    assert "old" not in page
    assert tidy.with_diagram(page, read) == page


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (PAGE, "ARCHITECTURE.md:2: differs from src/LAYERS: run `make diagram`"),
        ("# Title\n", "ARCHITECTURE.md:1: the marks of the drawing are missing"),
        (tidy.with_diagram(PAGE, layers.parse(LAYERS)), None),
    ],
)
def test_a_stale_drawing_is_found(page: str, message: str | None) -> None:
    expected = [] if message is None else [message]
    assert found(tidy.diagram_is_true, {"ARCHITECTURE.md": page}) == expected
