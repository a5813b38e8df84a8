# SPDX-License-Identifier: MIT
"""Formats, fields and samples of the access log, on every model."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.certificates import Pair, secure, trusting
from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import connect2
from tests.e2e.refused import refusal
from tests.e2e.statistics import settled
from tests.e2e.test_check import weir
from tests.e2e.wire import connect

TOP = Path(__file__).resolve().parents[2]
VALUES = TOP / "src" / "log" / "value.def"
LAYOUT = TOP / "src" / "log" / "layout.c"
MANUAL = TOP / "docs" / "man" / "weir.conf.5"


def test_json_has_the_duration_and_milliseconds(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    before = datetime.now(UTC) - timedelta(seconds=1)
    running = server("--access-log", str(log), "--log-format", "json")
    with connect(running.address) as connection:
        for path in ("/hello.txt", "/nothing"):
            connection.get(path)
    running.stop()
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(records) == 2
    for record in records:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["time"])
        written = datetime.fromisoformat(record["time"])
        assert before <= written <= datetime.now(UTC) + timedelta(seconds=1)
        assert isinstance(record["duration_us"], int)
        assert 0 <= record["duration_us"] < 3600 * 1000 * 1000


def test_the_phases_are_parts_of_the_duration(
    server: ServerFactory, site: Path, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    (site / "big.bin").write_bytes(bytes(20_000_000))
    flags = ("--log-format", "json", "--log-fields", "phases")
    running = server("--access-log", str(log), *flags)
    with connect(running.address) as connection:
        connection.send(b"GET /hello.txt HTTP/1.1\r\n")
        connection.send(b"Host: a\r\n\r\n")
        assert connection.read().status == 200
        connection.get("/big.bin")
    running.stop()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["status"] for line in lines] == [200, 200]
    for line in lines:
        assert abs(line["receive_us"] + line["send_us"] - line["duration_us"]) <= 1
        assert line["bytes"] in (6, 20_000_000)


FORMAT = (
    '$remote_addr [$time_iso8601] "$request" $status $body_bytes_sent $request_time '
    '"$http_user_agent" $server_protocol $scheme $cache $host'
)
LINE = re.compile(
    r'127\.0\.0\.1 \[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00\] "(?P<request>[^"]*)" '
    r'(?P<status>\d+) (?P<bytes>\d+) \d+\.\d{3} "(?P<agent>[^"]*)" HTTP/(?P<version>\d\.\d) '
    r"(?P<scheme>https?) (?P<cache>hit|miss|-) (?P<host>\S+)"
)


def test_a_format_of_nginx_is_written_on_every_path(
    server: ServerFactory, pair: Pair, site: Path, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    (site / "big.bin").write_bytes(bytes(300_000))
    listen = ("https://127.0.0.1:0", "127.0.0.1:0")
    flags = ("--access-log", str(log), "--log-format", FORMAT, "--h2c", "on")
    running = server(*pair.flags(), *flags, listen=listen)
    plain = running.urls[1].rstrip("/").rsplit(":", 1)
    address = ("127.0.0.1", int(plain[1]))
    paths = ("/hello.txt", "/big.bin", "/nothing")
    with secure(running.address, trusting(pair)) as connection:
        for path in paths:
            connection.get(path, "a", "User-Agent: tls")
    with connect(address) as connection:
        for path in paths:
            connection.get(path, "a", "User-Agent: plain")
    with connect2(address) as client:
        streams = [client.ask(path) for path in paths]
        assert [client.answer(stream).status for stream in streams] == [200, 200, 404]
    numbers = settled(running)["counters"]
    running.stop()
    matches = [LINE.fullmatch(line) for line in log.read_text().splitlines()]
    assert all(matches)
    seen = [match.groupdict() for match in matches if match]
    assert len(seen) == numbers["requests"] == 9
    assert [each["agent"] for each in seen].count("tls") == 3
    assert [each["scheme"] for each in seen].count("https") == 3
    assert [each["version"] for each in seen].count("2.0") == 3
    sent = {"/hello.txt": "6", "/big.bin": "300000"}
    for each in seen:
        path = each["request"].split()[1]
        assert each["status"] == ("200" if path in sent else "404")
        assert path not in sent or each["bytes"] == sent[path]
        assert (each["cache"] == "-") == (path not in sent)


def test_a_format_in_the_file_may_have_quotes(
    server: ServerFactory, site: Path, tmp_path: Path
) -> None:
    log, conf = tmp_path / "access.log", tmp_path / "weir.conf"
    for form in ("'%h \"%r\" %>s %{Range}i'", r'"%h \"%r\" %>s %{Range}i"'):
        conf.write_text(
            f"[server]\nlisten = 127.0.0.1:0\naccess-log = {log}\nlog-format = {form}\n"
            f"[site a]\nroot = {site}\n"
        )
        running = server("-c", str(conf), folder=None, listen=())
        with connect(running.address) as connection:
            connection.get("/hello.txt", "a", "Range: bytes=1-2")
        running.stop()
        assert log.read_text() == '127.0.0.1 "GET /hello.txt HTTP/1.1" 206 bytes=1-2\n'
        log.unlink()


def test_fields_are_added_to_combined(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    flags = ("--log-fields", "host, protocol, cache, id, tls, site, duration")
    running = server("--access-log", str(log), *flags)
    with connect(running.address) as connection:
        connection.get("/hello.txt", "name.test")
    running.stop()
    line = log.read_text()
    assert re.search(
        r'" [0-9a-f]{16} cache=(hit|miss) duration_us=\d+ host=name\.test protocol=HTTP/1\.1 '
        r"site=default\n$",
        line,
    )


@pytest.mark.parametrize("model", ["epoll", "fork", "prefork"])
def test_a_sample_has_all_errors_and_says_its_rate(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    flags = ("--log-format", "json", "--log-sample", "1/1000000")
    running = server("--access-log", str(log), *flags)
    for _ in range(3):
        with connect(running.address) as connection:
            for _ in range(5):
                connection.get("/hello.txt")
            connection.get("/nothing")
    assert settled(running)["counters"]["requests"] == 18
    running.stop()
    records = [json.loads(line) for line in log.read_text().splitlines()]
    errors = [record for record in records if record["status"] == 404]
    assert [record["sample"] for record in errors] == [1, 1, 1]
    assert len(records) < 18


def test_an_unknown_variable_is_an_error_of_check(site: Path) -> None:
    said = refusal(site, server="log-format = $remote_adr $status")
    assert "weir.conf:2: error: log-format: in `$remote_adr $status` there is no variable" in said
    assert "there is no variable $remote_adr; did you mean $remote_addr?" in said


FIELDS = (
    "is not cache, disk, duration, host, id, phases, protocol, scheme, site, time, tls, user or via"
)
COMMAS = "between several values write commas, not spaces"
SAMPLES = "is not a number from 1 to 1000000; write 10 or 1/10 to log one of ten requests"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("log-fields = host, protocl", f"`protocl` {FIELDS}; did you mean `protocol`?"),
        ("log-fields = request", f"`request` {FIELDS}"),
        ("log-fields = host tls", f"`host tls` {FIELDS}; {COMMAS}"),
        ("log-fields = tls, tls", "`tls` is there twice (first on line 2)"),
        ("log-fields =", "a value is missing"),
        ("log-sample = 0", f"`0` {SAMPLES}"),
        ("log-sample = 1/0", f"`1/0` {SAMPLES}"),
        ("log-sample = 2/3", f"`2/3` {SAMPLES}"),
        ("log-sample = ten", f"`ten` {SAMPLES}"),
        ("log-sample = 1000001", f"`1000001` {SAMPLES}"),
    ],
)
def test_a_refused_value_has_a_message_with_its_line_and_its_cure(
    site: Path, line: str, reason: str
) -> None:
    said = refusal(site, server=line)
    assert f"weir.conf:2: error: {line.split()[0]}: {reason}\n" in said


def test_fields_beside_a_format_of_ones_own_are_a_warning_with_a_cure(site: Path) -> None:
    conf = site.parent / "weir.conf"
    conf.write_text(f"[server]\nlog-format = $status\nlog-fields = host\n[site a]\nroot = {site}\n")
    done = weir("check", "-c", str(conf), cwd=site.parent)
    assert done.returncode == 0, done.stderr
    assert f"{conf}:3: warning: log-fields: this has no effect on a format of your own" in (
        done.stderr
    )
    assert "write the variables in `log-format`" in done.stderr


def test_the_manual_has_every_variable_and_every_field() -> None:
    manual = MANUAL.read_text()
    values = re.findall(
        r'^VALUE\(\w+, (?:NULL|"(\w+)"), (?:NULL|"(\w)"),', VALUES.read_text(), re.MULTILINE
    )
    assert len(values) > 20
    names = [f"${nginx}" for nginx, _ in values if nginx]
    names += [f"%{apache}" for _, apache in values if apache]
    assert [name for name in names if name not in manual] == []
    words = set(re.findall(r'^    \{ "(\w+)", "\w+", LOG_VALUE_', LAYOUT.read_text(), re.MULTILINE))
    assert len(words) > 10
    section = manual[manual.index(".It Ic log-fields") : manual.index(".It Ic log-sample")]
    assert words <= set(re.findall(r"\.It Cm (\w+)", section))
