# SPDX-License-Identifier: MIT
"""docs/configuration.md has what settings.def says."""

from __future__ import annotations

import pytest
import settings
import tidy

DEF = """
SERVER_SETTING(listen, "listen", LISTEN, 0, "127.0.0.1:8080", NETWORK,
               "address to "
               "accept on")
SITE_SETTING(headers, "header", HEADER, 0, "(none)", SITE,
             "field: \\"Name: value\\"")
PATH_SETTING(rewrite, "rewrite", REWRITE, 0, "(none)", PATH,
             "path")
"""
KINDS = 'KIND(LISTEN, LIST, "ADDRESS", NULL, true)\n'
PAGE = "# Title\n" + "".join(
    f"{settings.MARK.format(section)}old\n{settings.END}\nmore\n"
    for section in ("server", "site", "path")
)


def test_each_setting_is_a_row_with_its_default() -> None:
    page = settings.with_tables(PAGE, DEF, KINDS)
    assert "| `listen` | `127.0.0.1:8080` | address to accept on; several |\n" in page
    assert "| `rewrite` | none | path |\n" in page
    assert '| `header` | none | field: "Name: value" |\n' in page
    assert "old" not in page
    assert settings.with_tables(page, DEF, KINDS) == page


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (PAGE, "docs/configuration.md:1: differs from settings.def: run `make format`"),
        ("# Title\n", "docs/configuration.md:1: the marks of the server settings are missing"),
        (settings.with_tables(PAGE, DEF, KINDS), None),
    ],
)
def test_a_stale_table_is_found(page: str, message: str | None) -> None:
    files = dict(zip(tidy.SETTINGS_TABLES, (DEF, KINDS), strict=True))
    tree = tidy.Tree(files | {tidy.SETTINGS_PAGE: page})
    assert [str(f) for f in tidy.settings_are_drawn(tree)] == ([message] if message else [])
