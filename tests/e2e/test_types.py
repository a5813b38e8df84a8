# SPDX-License-Identifier: MIT
"""Media types: the built-in table, and the types of a site."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.refused import refusal
from tests.e2e.wire import connect

CONFIGURATION = """
[server]
listen = 127.0.0.1:0

[site plain]
host = plain.test
root = {site}

[site own]
host = own.test
root = {site}
types = text/typescript .TS mts, application/x-chess-pgn pgn
types = text/x-mine html
"""


@pytest.mark.parametrize("model", ["epoll"])
def test_each_site_has_its_types(server: ServerFactory, site: Path, tmp_path: Path) -> None:
    for name in ("a.ts", "b.MTS", "c.pgn", "d.rs", "e.css"):
        (site / name).write_bytes(b"content of " + name.encode())
    conf = tmp_path / "weir.conf"
    conf.write_text(CONFIGURATION.format(site=site))
    running = server("-c", str(conf), folder=None, listen=())
    wanted = {
        "/a.ts": ("video/mp2t", "text/typescript; charset=utf-8"),
        "/b.MTS": ("application/octet-stream", "text/typescript; charset=utf-8"),
        "/c.pgn": ("application/octet-stream", "application/x-chess-pgn"),
        "/d.rs": ("text/x-rust; charset=utf-8",) * 2,
        "/e.css": ("text/css; charset=utf-8",) * 2,
        "/index.html": ("text/html; charset=utf-8", "text/x-mine; charset=utf-8"),
    }
    with connect(running.address) as connection:
        for path, types in wanted.items():
            hosts = ("plain.test", "own.test")
            answers = [connection.get(path, host) for host in hosts]
            assert tuple(answer.get("Content-Type") for answer in answers) == types, path


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("rs", "`rs` is not a media type; write a type and its endings, such as text/x-rust rs"),
        ("text/x-rust", "`text/x-rust` has no ending; "),
        ("text/ rs", "`text/` is not a media type; "),
        ("text/x;charset=latin1 a", "`text/x;charset=latin1` is not a media type; "),
        ("text/x a.b", "`a.b` is not an ending; "),
        ("text/x a, text/y b A", "the ending `a` has a type already; remove one of the two"),
    ],
)
def test_a_wrong_type_is_an_error_of_check(site: Path, value: str, reason: str) -> None:
    said = refusal(site, of_site=f"types = {value}")
    assert f"weir.conf:5: error: types: {reason}" in said
