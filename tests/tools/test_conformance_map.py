# SPDX-License-Identifier: MIT
"""The map of RFC sections holds what the tree cites, and nothing else."""

from __future__ import annotations

from pathlib import Path

import conformance_map
import pytest

CASES = """\
# A page of cases

## L01 answers a plain request

RFC 9112 section 3

```request
RFC 9112 section 9.6
```

## L02 refuses a table

HTTP/1.1 only: another reason (RFC 9113 section 8.1).

RFC 9110 section 4.2.1, RFC 9112 section 3.2

| cell |
|---|
| `a` |
| `b` |

```request
{cell}
```
"""


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        ("(RFC 9112 section 6.3).", [("9112", "6.3")]),
        ("RFC 9112 sections 4 to 6", [("9112", "4"), ("9112", "5"), ("9112", "6")]),
        ("RFC 9113 sections 6.9 to 6.10", [("9113", "6.9"), ("9113", "6.10")]),
        ("RFC 9112 sections 7.1.1 and 7.1.2", [("9112", "7.1.1"), ("9112", "7.1.2")]),
        (" * see RFC 9112\n * section 2.2", [("9112", "2.2")]),
        ("RFC 9110", []),
    ],
)
def test_reads_citations(text: str, sections: list[tuple[str, str]]) -> None:
    assert list(conformance_map.citations(text)) == sections


def test_counts_the_rows_of_a_table_as_cases() -> None:
    assert list(conformance_map.cases(CASES)) == [
        ("L01 answers a plain request", [("9112", "3")], 1),
        ("L02 refuses a table", [("9110", "4.2.1"), ("9112", "3.2")], 2),
    ]


def test_finds_the_unit_tests_that_cite_a_section() -> None:
    text = """\
/* RFC 9113 section 5.1: a state. */
static int helper(void)

/* RFC 9113 sections
 * 6.1 and 6.2. */
static void refuses_padding(void **state)
{
}

static void cites_nothing(void **state)
"""
    assert list(conformance_map.unit_tests(text)) == [
        ("refuses_padding", [("9113", "6.1"), ("9113", "6.2")])
    ]


def test_finds_the_tests_that_send_frames(tmp_path: Path) -> None:
    (tmp_path / "tests/e2e").mkdir(parents=True)
    (tmp_path / conformance_map.RULES).write_text(
        'Rule("7541", "4.2", "refuses one", b"")\n'
        'Rule(\n    "9113",\n    "6.1",\n    "refuses two",\n)\nbad("8.2", "refuses three", b"x")\n'
    )
    (tmp_path / conformance_map.EXCHANGES).write_text(
        'def test_four_is_so(running: Server) -> None:\n    """RFC 9113 sections 6.9 and 6.10"""\n'
        'def test_five(running: Server) -> None:\n    """No section."""\n'
    )
    assert [found[1:] for found in conformance_map.frame_tests(tmp_path)] == [
        ("refuses one", ("7541", "4.2")),
        ("refuses two", ("9113", "6.1")),
        ("refuses three", ("9113", "8.2")),
        ("four_is_so", ("9113", "6.9")),
        ("four_is_so", ("9113", "6.10")),
    ]


def test_orders_sections_by_number() -> None:
    assert sorted(["10.1", "9.3.2", "9.3"], key=conformance_map.order) == ["9.3", "9.3.2", "10.1"]


def test_draws_a_row_for_the_code_and_one_for_each_case() -> None:
    cited = conformance_map.Cited({"http/body.c"}, [("a.md", "L01 is HTTP/1.1", 2)])
    page = conformance_map.draw({("9112", "6.3"): cited}, {("9112", "6.3"): "Message Body Length"})
    assert (
        "| **6.3 Message Body Length** | [http/body.c](../src/http/body.c) |\n"
        "| | [L01 is HTTP/1.1](../tests/conformance/cases/a.md#l01-is-http11) (2) |\n"
    ) in page


def test_every_cited_section_has_a_title() -> None:
    cited = conformance_map.collect(conformance_map.TOP)
    assert set(cited) <= set(conformance_map.titles(conformance_map.TOP))
