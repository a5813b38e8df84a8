# SPDX-License-Identifier: MIT
"""docs/media-types.md has what mime.def says."""

from __future__ import annotations

import media_types
import pytest
import tidy

DEF = """/* MIME(ending, media type, FIXED or FILL)
 */

/* The web */
MIME("html", "text/html", FIXED)
MIME("htm", "text/html", FILL) /* old */

/* Fonts, RFC 8081 */
MIME("woff", "font/woff", FIXED)
"""
PAGE = f"# Title\n{media_types.MARK}old\n{media_types.END}\nmore\n"


def test_each_type_is_a_row_with_its_endings() -> None:
    page = media_types.with_tables(PAGE, DEF)
    assert "## The web\n\n| type | endings |\n|---|---|\n| `text/html` | html htm\\* |\n" in page
    assert "## Fonts\n\n| type | endings |\n|---|---|\n| `font/woff` | woff |\n" in page
    assert "old" not in page
    assert page.endswith("<!-- end -->\nmore\n")
    assert media_types.with_tables(page, DEF) == page


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (PAGE, "docs/media-types.md:1: differs from mime.def: run `make format`"),
        ("# Title\n", "docs/media-types.md:1: the marks of the media types are missing"),
        (media_types.with_tables(PAGE, DEF), None),
    ],
)
def test_a_stale_table_is_found(page: str, message: str | None) -> None:
    tree = tidy.Tree({tidy.TYPES_TABLE: DEF, tidy.TYPES_PAGE: page})
    assert [str(f) for f in tidy.media_types_are_drawn(tree)] == ([message] if message else [])
