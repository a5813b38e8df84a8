# SPDX-License-Identifier: MIT
"""`weir load` when requests fail, wait for ever, or the result cannot be written.

The verdict and the exit status must say so, and the numbers must hold for the requests that have
an answer.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.certificates import Pair
from tests.e2e.framed import Framed, framed
from tests.e2e.framed import ok as ok_of
from tests.e2e.http2 import goaway
from tests.e2e.loading import INVALID, result_of, step_of, weir_load
from tests.e2e.misbehaving import Behaviour, GoneError, Peer, misbehaving, ok
from tests.e2e.running import WEIR
from tests.e2e.sealed import Sealed, url_of
from tests.waiting import LIMIT_S

MISSED = 3
REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
TRUNCATED = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun"


def in_turn(bad: Callable[[Peer], None]) -> Behaviour:
    """Answers the first request of a connection, and each second one after it."""

    def behave(peer: Peer) -> None:
        while True:
            peer.request()
            if peer.requests % 2:
                peer.send(ok())
            else:
                bad(peer)

    return behave


def truncates(peer: Peer) -> None:
    peer.send(TRUNCATED)
    raise GoneError


def doubts(step: dict[str, Any]) -> set[str]:
    return {doubt["name"] for doubt in step["doubts"]}


# ---- failed requests ----


@pytest.mark.parametrize("bad", [lambda peer: peer.send(REFUSAL), truncates])
def test_a_result_with_many_failed_requests_is_invalid(bad: Callable[[Peer], None]) -> None:
    words = ("--users", "1", "--requests", "40")
    with misbehaving(in_turn(bad)) as server:
        done = weir_load(server.url, *words)
        missed = weir_load(server.url, *words, "--slo", "errors<10%").returncode
        allowed = weir_load(server.url, *words, "--slo", "errors<90%", "--json")
    assert done.returncode == INVALID
    assert "INVALID: 50.00 % of the requests failed." in done.stdout
    assert "20 of 40 requests (50.00 %): " in done.stdout
    assert missed in (MISSED, INVALID)  # a busy machine may make the generator late
    assert not {"failed", "little"} & doubts(json.loads(allowed.stdout)["steps"][0])
    assert "some_failed" in doubts(json.loads(allowed.stdout)["steps"][0])


def test_bytes_that_belong_to_no_answer_are_no_failed_request() -> None:
    def behave(peer: Peer) -> None:
        while True:
            peer.request()
            peer.send(ok() + b"more")

    with misbehaving(behave) as server:
        step = step_of(server.url, "--users", "1", "--requests", "5")
    assert (step["answers"], step["failed_share"]) == (5, 0)
    assert ("unexpected" in doubts(step)) == (step["errors"]["unexpected"] > 0)


# ---- Little's law, beside failed requests ----


def test_the_time_of_wrong_bodies_is_no_time_of_the_answers() -> None:
    """Nearly all of the time would be unexplained, if the time of these requests counted."""

    def differs(peer: Peer) -> None:
        peer.wait(0.05)
        peer.send(ok(b"other"))

    words = ("--users", "1", "--requests", "40", "--verify", "hash")
    with misbehaving(in_turn(differs)) as server:
        step = step_of(server.url, *words)
    assert step["errors"]["wrong_body"] == 20
    assert step["little"]["applies"]
    assert abs(step["little"]["residual_share"]) < 0.5


def result_of_one_often_stopped(*words: str) -> dict[str, Any]:
    """The step of a load of one user whose generator is stopped now and then, and so is late."""
    limits = ("--users", "1", "--duration", "3s", "--warmup", "0", "--json")
    command = [str(WEIR), "load", *words, *limits]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as load:
        for _ in range(8):
            time.sleep(0.15)
            load.send_signal(signal.SIGSTOP)
            time.sleep(0.15)
            load.send_signal(signal.SIGCONT)
        out, _ = load.communicate(timeout=LIMIT_S)
    (step,) = json.loads(out)["steps"]
    assert isinstance(step, dict)
    return step


def test_the_lateness_after_a_failure_is_no_time_of_the_answers() -> None:
    """A user waits after a failure. A machine that wakes it late lengthens this wait."""
    with misbehaving(in_turn(truncates)) as server:
        step = result_of_one_often_stopped(server.url)
    assert step["errors"]["closed_amid"] > 0
    assert abs(step["little"]["residual_share"]) < 0.5


def test_the_lateness_before_a_failed_handshake_counts_once(good: Pair, trust: list[str]) -> None:
    """A user that is woken late has thought for longer. Its request then fails before it is sent.

    The first connection verifies the certificate. Each second one after it has an answer, so that
    a failure follows each think time.
    """
    context = good.context()

    def behave(connection: Peer) -> None:
        if connection.number % 2 == 0 and connection.number > 0:
            connection.receive()
            raise GoneError
        sealed = Sealed(connection, context)
        sealed.handshake()
        sealed.request()
        sealed.send(ok(b"hello", "Connection: close"))

    with misbehaving(behave) as server:
        step = result_of_one_often_stopped(url_of(server), *trust, "--think", "50ms")
    assert step["errors"]["tls_closed"] > 0
    assert abs(step["little"]["residual_share"]) < 0.15


@pytest.mark.parametrize("words", [("--think", "1s"), ()])
def test_users_that_a_step_lacks_do_not_count_in_it(words: tuple[str, ...]) -> None:
    """Those of the step before still think, or still wait for an answer."""

    def behave(peer: Peer) -> None:
        while True:
            peer.request()
            peer.wait(0 if words else 0.7)
            peer.send(ok())

    with misbehaving(behave) as server:
        limits = ("--steps", "20,2", "--duration", "2s", "--warmup", "0")
        _, step = result_of(server.url, *limits, *words)["steps"]
    assert step["answers"] > 0
    assert abs(step["little"]["residual_share"]) < 0.2


def test_the_end_of_a_connection_counts_once() -> None:
    """A request that GOAWAY excludes is sent again. Its response time contains the end."""

    def behave(connection: Framed) -> None:
        stream = connection.request()
        connection.send(ok_of(stream))
        connection.request()
        connection.send(goaway(stream, 0))
        connection.end()

    with framed(behave) as server:
        step = step_of(server.url, "--http2", "--users", "1", "--requests", "20")
    assert (step["answers"], step["http2"]["unprocessed"]) == (20, 19)
    assert step["closing_ns"] == 0


# ---- requests without an end ----


def silent(peer: Peer) -> None:
    peer.request()
    peer.wait_for_close()


@pytest.mark.parametrize("warmup", ["0", "200ms"])
def test_a_server_that_never_answers_is_named(warmup: str) -> None:
    words = ("--users", "3", "--duration", "300ms", "--warmup", warmup)
    with misbehaving(silent) as server:
        done = weir_load(server.url, *words)
        open_loop = weir_load(server.url, *words, "--rate", "50")
    assert (done.returncode, open_loop.returncode) == (INVALID, INVALID)
    for said in (done.stdout, open_loop.stdout):
        assert "INVALID: nothing was measured." in said
        # Without CPU for long, not all three users send a request in the measured time.
        assert re.search(
            r"Requests under way at the end: [1-3]; the longest had waited for ",
            " ".join(said.split()),
        )
        assert "See the errors" not in said
        # Without CPU until the end, the generator measures for no time, and says so.
        figures = said.partition("measured for ")[2].partition("\n")[2]
        assert figures
        assert "0.00 us" not in figures


def test_a_load_in_which_no_request_is_due_says_so() -> None:
    with misbehaving(silent) as server:
        words = ("--users", "1", "--rate", "0.01", "--poisson", "--warmup", "0")
        done = weir_load(server.url, *words, "--duration", "1ms", "--seed", "7")
    assert done.returncode == INVALID
    assert "No request was sent." in done.stdout
    assert "See the errors" not in done.stdout


def test_requests_that_are_never_answered_leave_a_trace() -> None:
    """Half of the users wait from the start to the end, and the others have quick answers."""

    def behave(peer: Peer) -> None:
        while True:
            peer.request()
            if peer.number % 2:
                peer.wait_for_close()
            peer.wait(0.01)
            peer.send(ok())

    with misbehaving(behave) as server:
        step = step_of(server.url, "--users", "4", "--duration", "3s", "--warmup", "200ms")
    assert step["unfinished"] >= 2
    assert step["longest_wait_ns"] >= 2_500_000_000
    slowest_ns = step["response"]["max_ns"]
    assert "unfinished" in doubts(step) or slowest_ns > step["longest_wait_ns"] / 10


# ---- results that cannot be written ----


@pytest.mark.parametrize("form", ["--json", "--csv", "--quiet"])
def test_a_result_that_cannot_be_written_is_one_message(form: str) -> None:
    with misbehaving(in_turn(lambda peer: peer.send(ok()))) as server:
        command = [str(WEIR), "load", server.url, "--requests", "10", form]
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                command,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=LIMIT_S,
            )
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as load:
            assert load.stdout
            assert load.stderr
            load.stdout.close()
            assert load.stderr
            said = load.stderr.read()
    assert (done.returncode, load.returncode) == (1, 1)
    assert done.stderr == "weir: cannot write to standard output: No space left on device\n"
    assert said == "weir: cannot write to standard output: Broken pipe\n"
