# SPDX-License-Identifier: MIT
"""`weir load` counts what happened, with servers that behave well and with servers that do not.

`make bench CLAIMS=1` measures how precise its times are.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import ANY

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.loading import INVALID, accounts_for, errors, result_of, step_of, weir_load
from tests.e2e.misbehaving import HEAD_END, Behaviour, Peer, misbehaving, ok
from tests.e2e.running import WEIR, Process
from tests.e2e.statistics import settled, wait_for
from tests.waiting import LIMIT_S, wait_until

one_model = pytest.mark.parametrize("model", ["percore"])


# The tests themselves may run after nohup, and processes inherit that SIGHUP is ignored.
HANGUP_ENDS = ("env", "--default-signal=HUP")


@contextlib.contextmanager
def load_under_way(*command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A load that the block watches and may end. It has ended after the block."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as load:
        try:
            yield load
        finally:
            load.kill()


# ---- servers that behave well ----


def test_answers_equal_the_lines_of_the_log(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = server("--access-log", str(log))
    step = step_of(
        f"{running.url}/hello.txt", "--users", "7", "--threads", "2", "--requests", "500"
    )
    running.stop()
    assert step["answers"] == step["requests"] == 500
    assert step["status"] == {"200": 500}
    assert step["body_bytes"] == 500 * len("hello\n")
    assert errors(step) == {}
    assert len(log.read_text().splitlines()) == 500 + step["reopened"]


@one_model
def test_answers_equal_the_counters_of_the_server(server: ServerFactory) -> None:
    running = server()
    step = step_of(
        f"{running.url}/hello.txt", f"{running.url}/none", "--users", "5", "--requests", "300"
    )
    numbers = settled(running)
    answered = {status: count for status, count in numbers["answers_by_status"].items() if count}
    assert (step["status"].keys(), sum(step["status"].values())) == ({"200", "404"}, 300)
    assert answered == step["status"]


@one_model
@pytest.mark.parametrize("keep", [True, False])
def test_connections_are_kept_or_opened_for_each_request(
    server: ServerFactory, *, keep: bool
) -> None:
    running = server()
    words = [] if keep else ["--no-keepalive"]
    step = step_of(running.url + "/", "--users", "4", "--requests", "100", *words)
    assert step["answers"] == 100
    assert step["connects"] == (4 if keep else 100)
    assert step["answers_reused"] == (96 if keep else 0)


@one_model
def test_pipelining_sends_no_request_twice(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = server("--access-log", str(log))
    step = step_of(running.url + "/", "--users", "3", "--pipeline", "16", "--requests", "1000")
    running.stop()
    accounts_for(step, 1000)
    assert errors(step) == {}
    assert len(log.read_text().splitlines()) == 1000 + step["reopened"]


@one_model
def test_head_answers_have_no_body_and_data_is_sent(server: ServerFactory) -> None:
    running = server()
    url = f"{running.url}/hello.txt"
    head = step_of(url, "--method", "HEAD", "--requests", "20")
    assert (head["answers"], head["body_bytes"], errors(head)) == (20, 0, {})
    post = step_of(url, "--data", "x" * 1000, "--requests", "20")
    assert post["status"] == {"405": 20}
    assert post["sent_bytes"] > 20 * 1000


@one_model
def test_a_load_without_a_success_is_invalid(server: ServerFactory) -> None:
    done = weir_load(f"{server().url}/absent", "--requests", "20")
    assert done.returncode == INVALID
    assert "No request succeeded." in done.stdout
    assert "All 20 answers have a status of 400 or above." in done.stdout


@one_model
def test_a_unix_socket_and_an_ipv6_address_can_be_loaded(
    server: ServerFactory, tmp_path: Path
) -> None:
    path = tmp_path / "socket"
    running = server(listen=(f"unix:{path}", "[::1]:0"))
    step = step_of(f"unix:{path}:/hello.txt", "--requests", "20")
    assert step["status"] == {"200": 20}
    step = step_of(f"{running.urls[1]}hello.txt", "--requests", "20")
    assert step["status"] == {"200": 20}


@one_model
def test_connections_come_from_all_source_addresses(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = server("--access-log", str(log))
    step_of(
        running.url + "/", "--source", "127.0.0.2,127.0.0.3", "--users", "4", "--requests", "40"
    )
    running.stop()
    seen = {line.split()[0] for line in log.read_text().splitlines()}
    assert seen == {"127.0.0.2", "127.0.0.3"}


@one_model
def test_urls_are_drawn_by_their_weights(server: ServerFactory, site: Path, tmp_path: Path) -> None:
    (site / "often").write_text("o")
    (site / "seldom").write_text("s" * 2)
    log, urls = tmp_path / "access.log", tmp_path / "urls"
    running = server("--access-log", str(log))
    urls.write_text(f"# the first names the host\n{running.url}/often 9\n\n/seldom 1\n")
    step = step_of("--urls", str(urls), "--requests", "2000", "--seed", "7")
    again = step_of("--urls", str(urls), "--requests", "2000", "--seed", "7", "--users", "10")
    running.stop()
    lines = log.read_text()
    assert lines.count("/often") + lines.count("/seldom") == 4000
    # 1,800 are expected, give or take 13; and the seed says which.
    assert 1700 < lines.count("/often") / 2 < 1900
    assert abs(step["body_bytes"] - again["body_bytes"]) < 40


@one_model
def test_steps_follow_each_other_on_the_same_connections(server: ServerFactory) -> None:
    running = server()
    result = result_of(
        running.url + "/", "--steps", "1,2,4", "--requests", "200", "--warmup", "50ms"
    )
    assert [step["users"] for step in result["steps"]] == [1, 2, 4]
    assert [step["answers"] for step in result["steps"]] == [200, 200, 200]
    assert sum(step["connects"] for step in result["steps"]) <= 4


@one_model
def test_thinking_and_waiting_fit_into_the_time_of_the_users(server: ServerFactory) -> None:
    running = server()
    words = ["--users", "20", "--think", "exp:20ms", "--duration", "1s", "--warmup", "200ms"]
    step = step_of(running.url + "/", *words)
    assert step["answers"] > 0
    assert step["thought_ns"] > 0
    little = step["little"]
    assert little["late_ns"] == pytest.approx(step["lag"]["sum_ns"] / step["answers"])
    parts = ("response_ns", "think_ns", "late_ns", "connect_ns", "close_ns", "residual_ns")
    assert sum(little[part] for part in parts) == pytest.approx(little["cycle_ns"])
    spent_ns = step["response_mean_ns"] * step["answers"] + step["thought_ns"]
    assert spent_ns <= 1.05 * step["user_ns"]
    assert step["user_ns"] <= 1.05 * 20 * step["measured_ns"]


def test_polling_needs_a_core_that_the_server_does_not() -> None:
    one_core = {sorted(os.sched_getaffinity(0))[0]}

    def on_one_core(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [WEIR, "load", "http://127.0.0.1:1/", "--duration", "2s", "--warmup", "0", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, one_core),
        )

    refused = on_one_core("--spin")
    assert refused.returncode == 2
    assert "--spin needs a core" in refused.stderr
    assert "--spin-anyway" in refused.stderr
    forced = on_one_core("--spin-anyway", "--json")
    assert errors(json.loads(forced.stdout)["steps"][0]) == {"connect_refused": ANY}


@one_model
def test_a_generator_that_polls_reports_the_time_that_it_worked(server: ServerFactory) -> None:
    running = server()
    words = ["--users", "2", "--think", "50ms", "--duration", "1s", "--warmup", "0"]
    step = step_of(running.url + "/", *words, "--spin-anyway")
    assert step["answers"] > 0
    assert errors(step) == {}
    used_ns = step["generator_user_ns"] + step["generator_system_ns"]
    assert step["busiest_thread_ns"] < used_ns
    sleeping = step_of(running.url + "/", *words)
    used_ns = sleeping["generator_user_ns"] + sleeping["generator_system_ns"]
    assert sleeping["busiest_thread_ns"] == used_ns


@one_model
def test_the_cpu_time_of_the_server_is_reported(server: ServerFactory) -> None:
    running = server()
    pid = str(running.popen.pid)
    step = step_of(running.url + "/", "--users", "4", "--requests", "20000", "--server-pid", pid)
    assert step["server_user_ns"] + step["server_system_ns"] > 0


@one_model
@pytest.mark.parametrize("words", [[], ["--users", "5"], ["--think", "1ms", "--users", "3"]])
def test_connecting_and_closing_are_parts_of_a_cycle(
    server: ServerFactory, words: list[str]
) -> None:
    running = server()
    words = ["--users", "1", *words] if "--users" not in words else words
    step = step_of(running.url + "/", "--no-keepalive", "--requests", "500", *words)
    little = step["little"]
    assert step["connects"] == 500
    assert little["connect_ns"] > 0
    assert little["close_ns"] > 0
    assert little["connect_ns"] + little["close_ns"] < little["cycle_ns"]
    assert step["connecting_ns"] == pytest.approx(step["connect"]["sum_ns"])


@one_model
def test_the_rows_of_the_seconds_add_up(server: ServerFactory, tmp_path: Path) -> None:
    running, rows = server(), tmp_path / "rows"
    step = step_of(
        running.url + "/",
        "--users",
        "5",
        "--think",
        "5ms",
        "--duration",
        "1200ms",
        "--warmup",
        "0",
        "--ndjson",
        str(rows),
        "--threads",
        "2",
    )
    seconds = [json.loads(line) for line in rows.read_text().splitlines()]
    assert sum(second.get("answers", 0) for second in seconds) == step["answers"]


# ---- known delays and stalls ----


def test_a_response_time_includes_the_delay_of_the_server() -> None:
    delay_s = 0.02

    def behave(peer: Peer) -> None:
        while True:
            peer.request()
            peer.wait(delay_s)
            peer.send(ok())

    with misbehaving(behave) as server:
        step = step_of(server.url, "--users", "1", "--requests", "50")
    assert step["answers"] == 50
    assert step["response"]["min_ns"] >= delay_s * 1e9


STALL_S = 1.0


@contextlib.contextmanager
def stalled(processes: list[Process]) -> Iterator[None]:
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process.pid, signal.SIGCONT)


@one_model
def test_a_stall_of_the_server_appears_in_the_intended_response_times(
    server: ServerFactory,
) -> None:
    running = server()
    words = ["--rate", "200", "--users", "50", "--duration", "60s", "--warmup", "0", "--json"]
    with load_under_way(WEIR, "load", running.url + "/", *words) as load:
        before = wait_for(running, lambda now: now["counters"]["requests"] > 100)
        with stalled([running.master, *running.workers()]):
            select.select([], [], [], STALL_S)  # the stall itself
        answered = before["counters"]["requests"] + 400
        wait_for(running, lambda now: now["counters"]["requests"] > answered)
        load.send_signal(signal.SIGINT)
        out, _ = load.communicate(timeout=LIMIT_S)
    (step,) = json.loads(out)["steps"]
    assert step["longest_gap_ns"] > 0.9 * STALL_S * 1e9
    assert step["intended"]["max_ns"] > 0.9 * STALL_S * 1e9
    # 50 users cannot send 200 requests meanwhile: the requests that waited for a user count, too.
    assert step["intended"]["count"] == step["answers"]
    assert step["intended"]["mean_ns"] > step["response"]["mean_ns"]


# ---- servers that misbehave ----


def chunked(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body


def reset_in_a_body(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun")
    peer.wait(0.05)
    peer.reset()


def reset_before(peer: Peer) -> None:
    peer.request()
    peer.reset()


def answers_then(peer: Peer, data: bytes) -> None:
    while True:
        peer.request()
        peer.send(data)


def closes_after(peer: Peer, data: bytes) -> None:
    peer.request()
    peer.send(data)


def never_answers(peer: Peer) -> None:
    peer.request()
    peer.wait_for_close()


def one_byte_at_a_time(peer: Peer) -> None:
    peer.request()
    for byte in ok(b"x" * 200):
        peer.send(bytes([byte]))
        peer.wait(0.02)


def speaks_first(peer: Peer) -> None:
    peer.send(b"220 welcome\r\n")
    peer.request()
    peer.wait_for_close()


TRUNCATED = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"
CONTRADICTION = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"
NO_LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"

FAULTS: dict[str, tuple[Behaviour, list[str], str]] = {
    "reset in a body": (reset_in_a_body, [], "reset_amid"),
    "reset before an answer": (reset_before, [], "reset_before"),
    "closed before an answer": (lambda p: closes_after(p, b""), [], "closed_before"),
    "truncated": (lambda p: closes_after(p, TRUNCATED), [], "closed_amid"),
    "a head cut off": (lambda p: closes_after(p, b"HTTP/1.1 200 O"), [], "closed_amid"),
    "two lengths": (lambda p: answers_then(p, CONTRADICTION), [], "bad_framing"),
    "no length": (lambda p: answers_then(p, NO_LENGTH), [], "bad_framing"),
    "bad chunk": (lambda p: answers_then(p, chunked(b"5\r\nhello!\r\n")), [], "bad_framing"),
    "no chunk": (lambda p: answers_then(p, chunked(b"zz\r\n")), [], "bad_framing"),
    "huge chunk": (lambda p: answers_then(p, chunked(b"f" * 16 + b"\r\n")), [], "bad_framing"),
    "chunks cut off": (lambda p: closes_after(p, chunked(b"5\r\nhel")), [], "closed_amid"),
    "garbage": (lambda p: answers_then(p, b"\x00\xff\x16\x03\x01 what"), [], "no_http"),
    "HTTP/2": (lambda p: answers_then(p, b"\0\0\x12\x04\0\0\0\0\0"), [], "no_http"),
    "speaks first": (speaks_first, ["--first-byte-timeout", "300ms"], "no_http"),
    "never answers": (never_answers, ["--first-byte-timeout", "200ms"], "first_byte_timeout"),
    "too slow": (one_byte_at_a_time, ["--response-timeout", "300ms"], "response_timeout"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_counted_by_its_kind(name: str) -> None:
    behaviour, words, kind = FAULTS[name]
    with misbehaving(behaviour) as server:
        step = step_of(server.url, "--users", "2", "--requests", "4", *words)
        accounts_for(step, 4)
        if name == "speaks first":  # before or after the request arrives
            assert set(errors(step)) <= {"no_http", "unexpected", "closed_before"}
            return
        assert errors(step) == {kind: 4}
        assert server.requests <= 4
        if not words:  # a client that stops waiting can close before the server reads its request
            wait_until(lambda: server.requests == 4, "the server has read every request")


def test_a_refused_connection_is_counted_and_retried_slowly() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    limits = ("--users", "2", "--warmup", "0", "--duration", "500ms")
    step = step_of(f"http://127.0.0.1:{port}/", *limits)
    assert set(errors(step)) == {"connect_refused"}
    assert step["answers"] == 0
    assert errors(step)["connect_refused"] < 0.4e-6 * step["measured_ns"] + 10  # 400 per second
    done = weir_load(f"unix:/nonexistent-{port}:/", "--requests", "3", "--json")
    assert json.loads(done.stdout)["steps"][0]["errors"]["connect_refused"] == 3


def test_bytes_behind_an_answer_belong_to_no_answer() -> None:
    with misbehaving(lambda peer: answers_then(peer, ok() + b"more")) as server:
        step = step_of(server.url, "--users", "1", "--requests", "5")
    assert step["answers"] == 5
    assert errors(step).keys() <= {"unexpected"}
    assert step["connects"] == 5


def test_bytes_behind_a_body_that_is_discarded_belong_to_no_answer() -> None:
    """The end of the body and the bytes behind it arrive together."""
    answer = ok(b"b" * 40_000) + b"more"

    def behave(peer: Peer) -> None:
        while True:
            peer.request()
            peer.send(answer[:-14])
            peer.send(answer[-14:])

    with misbehaving(behave) as server:
        step = step_of(server.url, "--users", "1", "--requests", "20")
    assert (step["answers"], step["connects"]) == (20, 20)
    assert errors(step) == {"unexpected": 20}
    assert step["body_bytes"] == 20 * 40_000


def test_a_redirect_is_counted_and_not_followed() -> None:
    moved = b"HTTP/1.1 301 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
    with misbehaving(lambda peer: answers_then(peer, moved)) as server:
        step = step_of(server.url, "--requests", "10", "--users", "2")
        asked = server.requests
    assert (step["redirects"], step["status"], asked) == (10, {"301": 10}, 10)


OLD = b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nto the end"
CLOSES = ok(b"hello", "Connection: close")
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + CLOSES


@pytest.mark.parametrize("answer", [OLD, CLOSES, INTERIM])
def test_servers_that_close_after_each_answer_cause_no_errors(answer: bytes) -> None:
    with misbehaving(lambda peer: closes_after(peer, answer)) as server:
        step = step_of(server.url, "--requests", "20", "--users", "3")
        asked = server.requests
    assert (step["answers"], step["connects"], asked) == (20, 20, 20)
    assert errors(step) == {}
    assert step["body_bytes"] == 20 * (10 if answer == OLD else 5)


def test_pipelined_requests_behind_the_last_answer_are_sent_again() -> None:
    """The server answers the first of two requests. The second one goes on a new connection."""
    length: list[int] = []

    def behave(peer: Peer) -> None:
        length.append(len(peer.request()) + len(HEAD_END))
        peer.send(CLOSES)

    words = ["--users", "1", "--pipeline", "2", "--requests", "10"]
    with misbehaving(behave) as server:
        step = step_of(server.url, *words)
    assert (step["answers"], step["connects"], errors(step)) == (10, 10, {})
    assert step["reopened"] == 5
    assert step["sent_bytes"] == 15 * length[0]


@pytest.mark.parametrize("answer", [CLOSES, OLD, ok(b"hello")], ids=["said", "body", "silent"])
def test_one_answer_for_each_connection_fails_no_pipelined_request(answer: bytes) -> None:
    """Requests at the end of the pipeline are sent on several connections until their turn."""

    def behave(peer: Peer) -> None:
        peer.request()
        peer.send(answer)
        peer.connection.shutdown(socket.SHUT_WR)
        peer.wait_for_close()  # a reset, because of unread requests, could discard the answer

    words = ["--users", "1", "--pipeline", "4", "--requests", "20"]
    with misbehaving(behave) as server:
        step = step_of(server.url, *words)
    assert (step["answers"], step["connects"], errors(step)) == (20, 20, {})


def test_thinking_longer_than_the_server_keeps_a_connection_repeats_no_request() -> None:
    def behave(peer: Peer) -> None:
        peer.request()
        peer.send(ok())
        peer.wait(0.02)  # and closes, without having said that it would

    with misbehaving(behave) as server:
        step = step_of(server.url, "--requests", "30", "--users", "3", "--think", "60ms")
        asked = server.requests
    assert (step["answers"], errors(step)) == (30, {})
    assert asked == 30
    assert step["connects"] == 30


def test_a_request_on_a_connection_that_just_closed_is_sent_again() -> None:
    def behave(peer: Peer) -> None:
        peer.request()
        peer.send(ok())
        peer.request()  # taken, and left without an answer

    with misbehaving(behave) as server:
        step = step_of(server.url, "--requests", "21", "--users", "1")
        asked = server.requests
    assert (step["answers"], errors(step)) == (21, {})
    assert step["reopened"] == 20
    assert asked == 21 + step["reopened"]


def test_a_changed_body_is_an_error() -> None:
    def behave(peer: Peer) -> None:
        while True:
            peer.request()
            peer.send(ok(b"same!" if peer.requests % 5 else b"other"))

    with misbehaving(behave) as server:
        words = ["--users", "1", "--requests", "20"]
        assert errors(step_of(server.url, *words, "--verify", "length")) == {}
        step = step_of(server.url, *words, "--verify", "hash")
    assert errors(step) == {"wrong_body": 4}
    assert step["answers"] == 16


def test_error_pages_are_counted_by_their_status_and_not_compared() -> None:
    """The first body to compare with is that of a good answer."""
    page = ok(b"an error page").replace(b"200 OK", b"500 Error")

    def behave(peer: Peer) -> None:
        while True:
            peer.request()
            peer.send(page if peer.requests % 2 else ok(b"same!"))

    with misbehaving(behave) as server:
        for kind in ("length", "hash"):
            step = step_of(server.url, "--users", "1", "--requests", "20", "--verify", kind)
            assert errors(step) == {}
            assert step["status"] == {"200": 10, "500": 10}


def test_long_bodies_are_counted_whatever_their_heads_and_pieces() -> None:
    """Long bodies are discarded in the kernel, after a head of the same length as the last one."""
    lengths = (40_000, 40_000, 300_000, 64_000, 5, 64_000, 33_000, 0)

    def behave(peer: Peer) -> None:
        while True:
            peer.request()
            turn = peer.requests - 1
            answer = ok(b"b" * lengths[turn % len(lengths)], "X-Turn: " + "t" * (turn % 3 * 50))
            cut = 20 + turn * 37 % 400
            for piece in (answer[:cut], answer[cut : cut + 33_000], answer[cut + 33_000 :]):
                peer.send(piece)

    with misbehaving(behave) as server:
        step = step_of(server.url, "--users", "1", "--requests", "48")
    assert errors(step) == {}
    assert step["answers"] == 48
    assert step["body_bytes"] == 6 * sum(lengths)
    assert step["connects"] == 1


def test_a_lack_of_descriptors_is_reported() -> None:
    with misbehaving(lambda peer: answers_then(peer, ok())) as server:
        done = subprocess.run(
            [
                "prlimit",
                "--nofile=20:20",
                str(WEIR),
                "load",
                server.url,
                "--users",
                "40",
                "--duration",
                "500ms",
                "--warmup",
                "0",
                "--json",
            ],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    (step,) = json.loads(done.stdout)["steps"]
    assert done.returncode == INVALID
    assert set(errors(step)) == {"no_descriptor"}
    assert step["answers"] > 0


def test_a_load_ends_although_more_users_fail_than_a_turn_can_serve() -> None:
    """The first ones try again before the last one has failed."""
    with misbehaving(lambda peer: answers_then(peer, ok())) as server:
        words = ["load", server.url, "--users", "1000000", "--duration", "1s", "--warmup", "0"]
        done = subprocess.run(
            ["prlimit", "--nofile=20:20", str(WEIR), *words, "--json"],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    assert done.returncode == INVALID


# ---- the command ----


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "a URL is missing"),
        (["ftp://localhost/"], "neither http://, https:// nor unix:"),
        (["http:///path"], "names no host"),
        (["http://u@127.0.0.1/"], "--header"),
        (["http://127.0.0.1:70000/"], "names no host and port"),
        (["http://127.0.0.1/a b"], "%20"),
        (["/path"], "no URL before it"),
        (["URL", "--userz", "3"], "did you mean --users?"),
        (["URL", "--zzzz"], "weir help load"),
        (["URL", "--users"], "--users needs a value"),
        (["URL", "--users", "0"], "not a number from 1"),
        (["URL", "--users", "3", "--steps", "1,2"], "choose one"),
        (["URL", "--steps", "5..1"], "10..100:10"),
        (["URL", "--steps", "1,,2"], "10..100:10"),
        (["URL", "--think", "40"], "exp:40ms"),
        (["URL", "--think", "uniform:9ms..1ms"], "uniform:10ms..70ms"),
        (["URL", "--duration", "10"], "write 10s"),
        (["URL", "--duration", "0s"], "too short"),
        (["URL", "--duration", "1000000h"], "too long"),
        (["URL", "--rate", "1e12"], "at most 100000000"),
        (["URL", "--duration", "1s", "--requests", "5"], "choose one"),
        (["URL", "--rate", "0"], "requests a second"),
        (["URL", "--rate", "5", "--think", "1s"], "no meaning"),
        (["URL", "--rate", "5", "--users", "2", "--threads", "3"], "3 threads share 2 users; use"),
        (["URL", "--poisson"], "--rate"),
        (["URL", "--pipeline", "4", "--think", "1s"], "--pipeline"),
        (["URL", "--poisson=yes"], "takes no value"),
        (["URL", "--header", "no colon"], "Name: value"),
        (["URL", "--header", "Content-Length: 5"], "--data"),
        (["URL", "--method", "G E T"], "no method"),
        (["URL", "--data-file", "/nonexistent"], "No such file"),
        (["URL", "--urls", "/nonexistent"], "No such file"),
        (["URL", "--verify", "all"], "length nor hash"),
        (["URL", "--source", "here"], "not an address"),
        (["URL", "--cpus", "x"], "--cpus"),
        (["URL", "--shard", "3/3"], "I/N"),
        (["URL", "--json", "--csv"], "choose one"),
        (["URL", "--slo", "p99"], "--slo"),
        (["URL", "--hgrm", "/nonexistent/x"], "--hgrm: /nonexistent/x: No such file"),
        (["URL", "--ndjson", "/dev/null/x"], "--ndjson: /dev/null/x: Not a directory"),
        (["URL", "-c", "10"], "--users N"),
        (["URL", "-c10"], "--users N"),
        (["URL", "--timeout=3s"], "--response-timeout"),
        (["URL", "--h2"], "HTTP/2 is --http2"),
        (["URL", "--pipeline", "257"], "not a number from 1 to 256"),
        (["URL", "--http2", "--header", "Upgrade: h2c"], "HTTP/2 has no field `Upgrade`"),
        (["URL", "--http2", "--header", "Host: a", "--header", "Host: b"], "has one Host"),
        (["URL", "--http2", "--header", "X: " + "x" * 40000], "more than 16383 bytes"),
        (["URL", "--server-pid", "4194304"], "there is no process 4194304"),
        (["URL", "--source", "192.0.2.7"], "192.0.2.7: Cannot assign"),
        (["URL", "--source", "::1"], "none of these can reach 127.0.0.1:1, which is of IPv4"),
        (["unix:/s", "--source", "127.0.0.1"], "a Unix socket"),
        (["URL", "--start-at", "1795248000"], "date +%s%N"),
    ],
)
def test_each_mistake_is_reported_in_one_line(words: list[str], said: str) -> None:
    given = ["http://127.0.0.1:1/" if word == "URL" else word for word in words]
    done = weir_load(*given)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("weir: ")


@contextlib.contextmanager
def terminal_load(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A load with a terminal as standard error; yields the other end of the terminal."""
    ours, theirs = pty.openpty()
    load = subprocess.Popen([WEIR, "load", *arguments], stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    try:
        yield load, ours
    finally:
        load.kill()
        load.wait()
        assert load.stdout
        load.stdout.close()
        os.close(ours)


def read_until(fd: int, wanted: bytes) -> bytes:
    seen = b""
    while not re.search(wanted, seen):
        assert select.select([fd], [], [], LIMIT_S)[0], seen
        seen += os.read(fd, 4096)
    return seen


@one_model
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_load_with_a_result(server: ServerFactory, number: signal.Signals) -> None:
    running = server()
    words = ["--steps", "1,2,3", "--duration", "60s", "--warmup", "0", "--csv"]
    with load_under_way(*HANGUP_ENDS, WEIR, "load", running.url + "/", *words) as load:
        wait_for(running, lambda now: now["counters"]["requests"] > 100)
        load.send_signal(number)
        out, _ = load.communicate(timeout=LIMIT_S)
    (row,) = csv.DictReader(io.StringIO(out))
    assert row["interrupted"] == "true"
    assert int(row["answers"]) > 0


def test_a_step_before_an_interrupted_warm_up_is_whole() -> None:
    """The second connection is that of the second step, which starts with its warm-up."""

    def behave(peer: Peer) -> None:
        while True:
            peer.request()
            if (peer.number, peer.requests) == (1, 1):
                load.send_signal(signal.SIGINT)
            peer.wait(0.05)
            peer.send(ok())

    words = ["--steps", "1,2", "--requests", "5", "--warmup", "2s", "--json"]
    with misbehaving(behave) as server, load_under_way(WEIR, "load", server.url, *words) as load:
        out, _ = load.communicate(timeout=LIMIT_S)
    result = json.loads(out)
    assert result["interrupted"] is True
    (step,) = result["steps"]
    assert (step["answers"], step["interrupted"]) == (5, False)


@one_model
def test_after_nohup_a_load_continues_without_its_terminal(server: ServerFactory) -> None:
    running = server()
    words = ["--users", "1", "--duration", "60s", "--warmup", "0", "--quiet"]
    with load_under_way("nohup", WEIR, "load", running.url + "/", *words) as load:
        before = wait_for(running, lambda now: now["counters"]["requests"] > 10)
        load.send_signal(signal.SIGHUP)
        more = before["counters"]["requests"] + 1000
        wait_for(running, lambda now: now["counters"]["requests"] > more)
        assert load.poll() is None


@one_model
def test_a_terminal_shows_progress_and_ctrl_c_ends_with_a_result(
    server: ServerFactory,
) -> None:
    running = server()
    words = ["--users", "3", "--think", "10ms", "--duration", "60s", "--warmup", "0", "--json"]
    with terminal_load(running.url + "/", *words) as (load, terminal):
        shown = read_until(terminal, rb"3 users  [1-9][0-9]*/s .* errors")
        assert b"step 1/1" in shown
        load.send_signal(signal.SIGINT)
        out, _ = load.communicate(timeout=LIMIT_S)
    result = json.loads(out)
    assert result["interrupted"] is True
    assert result["steps"][0]["answers"] > 0
    assert result["steps"][0]["interrupted"] is True
    assert result["steps"][0]["measured_ns"] < 60e9


def test_a_load_ends_although_the_server_never_answers() -> None:
    with misbehaving(never_answers) as server:
        step = step_of(server.url, "--duration", "300ms", "--warmup", "0", "--users", "3")
    assert (step["requests"], step["answers"]) == (3, 0)


@one_model
def test_objectives_decide_the_exit_status(server: ServerFactory) -> None:
    running = server()
    words = [running.url + "/", "--users", "10", "--think", "20ms", "--requests", "400"]
    assert weir_load(*words, "--slo", "errors<1%").returncode in (0, INVALID)
    assert weir_load(*words, "--slo", "throughput>1000000").returncode in (3, INVALID)


def test_help_names_the_important_options() -> None:
    done = weir_load("--help")
    assert done.returncode == 0
    for word in ("--users", "--think", "--rate", "--slo", "Examples:", "merge"):
        assert word in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
