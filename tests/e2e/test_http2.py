# SPDX-License-Identifier: MIT
"""HTTP/2 as a client at the level of frames sees it, on every model.

frame_rules.py has the rules that one exchange proves. Here are those that need several.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.certificates import Pair, make
from tests.e2e.conftest import ServerFactory
from tests.e2e.frame_rules import RULES, Continues, Ends, Finishes, Resets, Rule, Serves
from tests.e2e.http2 import (
    FRAME_MAX,
    PREFACE,
    WINDOW,
    Client,
    Code,
    EndedError,
    Kind,
    Setting,
    StreamResetError,
    connect2,
    data,
    headers,
    ping,
    priority_update,
    request,
    reset,
    settings,
    window_update,
)
from tests.e2e.running import Server
from tests.e2e.statistics import settled, wait_for
from tests.e2e.wire import TIMEOUT_S, Connection, connect
from tests.waiting import wait_until

HELLO = b"hello\n"
BIG = os.urandom(300_000)
WINDOW_OF_STREAMS = Setting.INITIAL_WINDOW_SIZE
H2C = ("--h2c", "on")


@pytest.fixture
def running(server: ServerFactory, site: Path) -> Server:
    (site / "big.bin").write_bytes(BIG)
    return server(*H2C)


def outcome(client: Client, stream: int) -> int:
    """The status of the answer, or the error of RST_STREAM, which is a smaller number."""
    try:
        return client.answer(stream).status
    except StreamResetError as error:
        return error.code


def play(rule: Rule, running: Server) -> None:
    with connect2(running.address, start=rule.start) as client:
        client.send(rule.sent)
        match rule.expected:
            case Ends(codes):
                code = client.end()
                assert code in codes, f"GOAWAY is {code}"
                return
            case Serves(stream, status):
                assert client.answer(stream).status == status
            case Resets(stream, codes, statuses):
                got = outcome(client, stream)
                assert got in (*codes, *statuses), f"the stream's end is {got}"
            case Finishes(stream):
                assert client.answer(stream).status == 200
                assert client.end() in (None, Code.NO_ERROR)
                return
            case Continues():
                pass
        client.settle()
        assert client.get().body == HELLO


def test_the_rules_of_the_protocol_hold(running: Server) -> None:
    wrong = []
    for rule in RULES:
        try:
            play(rule, running)
        except (AssertionError, EndedError, StreamResetError) as error:
            name = f"RFC {rule.rfc} section {rule.section} {rule.title}"
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert not wrong, f"{len(wrong)} of {len(RULES)}:\n" + "\n".join(wrong)
    with connect(running.address) as plain:
        assert plain.get("/hello.txt").body == HELLO
    numbers = settled(running)["counters"]
    assert numbers["http2_streams_opened"] == numbers["http2_streams_closed"]
    assert numbers["http2_connections_begun"] == numbers["http2_connections_ended"]


def test_any_split_of_the_input_gives_the_same_answers(running: Server) -> None:
    """RFC 9113 section 4.1"""
    whole = PREFACE + settings() + headers(1, request()) + headers(3, request(b"/nothing"))
    whole += headers(5, request(b"/", method=b"POST"), end=False) + data(5, b"x", end=True)
    with connect2(running.address, start=b"") as client:
        client.send(whole, step=1)
        assert [client.answer(stream).status for stream in (1, 3, 5)] == [200, 404, 405]


def received(client: Client, expected: int, *streams: int) -> int:
    """Waits until the streams have their heads and `expected` bytes of DATA together. Returns how
    many they have once the server has sent all that it may send.

    A PING is answered before the DATA of the same turn. The second one is read after that turn.
    """
    answers = [client.streams[stream] for stream in streams]
    while any(each.status is None for each in answers) or (
        sum(len(each.body) for each in answers) < expected
    ):
        assert client.receive(), client.goaway
    client.settle()
    client.settle()
    return sum(len(each.body) for each in answers)


def test_no_data_is_sent_beyond_the_window_of_a_stream(running: Server) -> None:
    """RFC 9113 section 6.9.1"""
    with connect2(running.address, (WINDOW_OF_STREAMS, 0), refund=False) as client:
        stream = client.ask("/big.bin")
        assert received(client, 0, stream) == 0
        assert client.streams[stream].status == 200
        for step, total in ((1, 1), (1000, 1001), (20_000, 21_001)):
            client.send(window_update(stream, step))
            assert received(client, total, stream) == total
        client.send(window_update(0, len(BIG)) + window_update(stream, len(BIG)))
        assert client.answer(stream).body == BIG


def test_no_data_is_sent_beyond_the_window_of_the_connection(running: Server) -> None:
    """RFC 9113 section 6.9.1"""
    with connect2(running.address, (WINDOW_OF_STREAMS, 10**6), refund=False) as client:
        streams = [client.ask("/big.bin") for _ in range(3)]
        assert received(client, WINDOW, *streams) == WINDOW
        client.send(window_update(0, 10**6))
        assert [client.answer(stream).body == BIG for stream in streams] == [True] * 3


def test_a_body_without_bytes_needs_no_window(running: Server, site: Path) -> None:
    """RFC 9113 section 6.9"""
    (site / "empty.txt").write_bytes(b"")
    with connect2(running.address, (WINDOW_OF_STREAMS, 0), refund=False) as client:
        assert client.get("/empty.txt").body == b""
        assert client.answer(client.ask("/big.bin", method="HEAD")).status == 200


def test_a_client_that_opens_its_windows_in_small_steps_is_served(
    running: Server, site: Path
) -> None:
    """Go's client returns each 4 KiB that it reads, to both windows, and many at a time."""
    (site / "long.bin").write_bytes(BIG * 20)
    wide = (WINDOW_OF_STREAMS, 2**22)
    with connect2(running.address, wide, refund=False) as client:
        client.send(window_update(0, 2**22))
        stream, returned = client.ask("/long.bin"), 0
        while not client.streams[stream].ended:
            assert client.receive(), client.goaway
            unread = len(client.streams[stream].body) - returned
            if unread > 2**21:
                steps = unread // 4096
                client.send((window_update(0, 4096) + window_update(stream, 4096)) * steps)
                returned += steps * 4096
        assert client.answer(stream).body == BIG * 20


def test_a_setting_changes_the_windows_of_open_streams(running: Server) -> None:
    """RFC 9113 section 6.9.2"""
    with connect2(running.address, refund=False) as client:
        client.send(window_update(0, 10**6))
        stream = client.ask("/big.bin")
        assert received(client, WINDOW, stream) == WINDOW
        client.send(settings((WINDOW_OF_STREAMS, 1000)))  # the window is now negative
        client.send(window_update(stream, WINDOW - 1000))
        assert received(client, WINDOW, stream) == WINDOW
        client.send(window_update(stream, 1))
        assert received(client, WINDOW + 1, stream) == WINDOW + 1
        client.send(settings((WINDOW_OF_STREAMS, 10**6)))
        assert client.answer(stream).body == BIG


def test_frames_keep_the_largest_size_although_the_client_allows_more(running: Server) -> None:
    """RFC 9113 section 4.2"""
    with connect2(running.address, (Setting.MAX_FRAME_SIZE, 2**20)) as client:
        assert client.get("/big.bin").body == BIG
        assert max(len(frame.payload) for frame in client.order) <= FRAME_MAX


def test_a_ping_returns_before_the_answers_that_wait(running: Server) -> None:
    """RFC 9113 section 6.7"""
    with connect2(running.address, (WINDOW_OF_STREAMS, 0), refund=False) as client:
        client.ask("/big.bin")
        client.send(ping(b"12345678"))
        client.settle()
        assert client.pongs[0] == b"12345678"


def test_settings_are_acknowledged_in_order(running: Server) -> None:
    """RFC 9113 section 6.5.3"""
    with connect2(running.address) as client:
        client.send(*(settings((WINDOW_OF_STREAMS, size)) for size in (1, 2, 3)))
        client.settle()
        acknowledged = [f for f in client.order if f.kind == Kind.SETTINGS and f.flags & 1]
        assert len(acknowledged) == 4
        assert client.stream_window == 3


def test_more_streams_than_announced_are_refused(running: Server) -> None:
    """RFC 9113 section 5.1.2"""
    with connect2(running.address) as client:
        client.settle()
        most = client.settings[Setting.MAX_CONCURRENT_STREAMS]
        upload = request(b"/", method=b"POST")
        streams = range(1, 2 * most + 2, 2)
        client.send(*(headers(stream, upload, end=False) for stream in streams))
        with pytest.raises(StreamResetError, match="REFUSED_STREAM"):
            client.answer(streams[-1])
        client.send(*(data(stream, b"x", end=True) for stream in streams[:-1]))
        assert {client.answer(stream).status for stream in streams[:-1]} == {405}
        assert client.get().body == HELLO
    wait_for(running, lambda now: now["counters"]["http2_streams_refused"] == 1)


def test_a_body_above_the_limit_is_refused_before_its_end(running: Server) -> None:
    """RFC 9113 section 8.1"""
    upload = request(b"/", (b"content-length", b"3000000"), method=b"POST")
    with connect2(running.address) as client:
        client.send(headers(1, upload, end=False) + data(1, bytes(1000)))
        assert client.answer(1).status == 413
        client.send(data(1, bytes(1000)))  # was under way
        assert client.get().body == HELLO
        while client.streams[1].reset is None:  # the client does not end its request
            assert client.receive()
        assert client.streams[1].reset == Code.NO_ERROR
        assert client.get().body == HELLO


def test_a_body_whose_end_is_missing_is_refused_at_the_limit(running: Server) -> None:
    """RFC 9110 section 15.5.14"""
    with connect2(running.address) as client:
        stream = client.ask("/", method="POST", end=False)
        for _ in range(70):  # 1,120,000 bytes
            client.send(data(stream, bytes(16_000)))
            client.settle()
            if client.streams[stream].ended:
                break
        assert client.answer(stream).status == 413
        assert client.get().body == HELLO


def test_a_reset_stream_gets_no_more_frames(running: Server) -> None:
    """RFC 9113 section 5.4.2"""
    with connect2(running.address, refund=False) as client:
        stream = client.ask("/big.bin")
        assert received(client, WINDOW, stream) == WINDOW
        client.send(reset(stream))
        client.settle()
        seen = len(client.order)
        client.send(window_update(0, 10**6) + window_update(stream, 10**6))
        assert client.get().body == HELLO
        assert all(frame.stream != stream for frame in client.order[seen:])
    numbers = settled(running)["counters"]
    assert numbers["http2_resets_received"] == 1
    assert numbers["http2_streams_opened"] == numbers["http2_streams_closed"] == 2


def test_an_error_names_the_last_stream_that_was_answered(running: Server) -> None:
    """RFC 9113 section 6.8"""
    with connect2(running.address) as client:
        for _ in range(3):
            client.get()
        client.send(data(0, b"x"))
        assert client.end() == Code.PROTOCOL_ERROR
        assert client.goaway == (5, Code.PROTOCOL_ERROR)


def test_a_stop_completes_the_streams_and_refuses_later_ones(running: Server) -> None:
    """RFC 9113 section 6.8"""
    with connect2(running.address, refund=False) as client:
        stream = client.ask("/big.bin")
        assert received(client, WINDOW, stream) == WINDOW
        running.signal(signal.SIGTERM)
        while client.goaway is None:  # the client sends nothing that could make the server notice
            assert client.receive()
        assert client.goaway == (2**31 - 1, Code.NO_ERROR)
        client.settle()
        late = client.ask("/hello.txt")
        client.send(window_update(0, 10**6) + window_update(stream, 10**6))
        assert client.answer(stream).body == BIG
        assert client.end() == Code.NO_ERROR
        assert client.goaway == (stream, Code.NO_ERROR)
        assert client.streams[late].status is None
    assert running.wait() == 0


def goaways(client: Client) -> list[int]:
    """The last streams of the GOAWAY frames that have arrived."""
    frames = [got for got in client.order if got.kind == Kind.GOAWAY]
    assert {got.payload[4:8] for got in frames} <= {bytes(4)}, "an error"
    return [int.from_bytes(got.payload[:4], "big") for got in frames]


def ends_gracefully(client: Client, end: Callable[[], None]) -> None:
    """The server ends an idle connection. The client learns it without sending anything, and its
    last request crosses the announcement. The final GOAWAY says whether that was processed."""
    assert client.get().body == HELLO
    end()
    while client.goaway is None:
        assert client.receive()
    crossed = client.ask()
    assert client.end() == Code.NO_ERROR
    first, last = goaways(client)
    assert first == 2**31 - 1
    assert last in (1, crossed)  # 1: the client was slow to acknowledge the announcement
    assert (client.streams[crossed].status == 200) == (last == crossed)


@contextlib.contextmanager
def connected(running: Server, pair: Pair | None) -> Iterator[Client]:
    """A client over TLS, where the server has this certificate, or in clear text."""
    if not pair:
        with connect2(running.address) as client:
            yield client
        return
    context = ssl.create_default_context(cafile=str(pair.certificate))
    context.set_alpn_protocols(["h2"])
    plain = socket.create_connection(running.address, TIMEOUT_S)
    with context.wrap_socket(plain, server_hostname="localhost") as wrapped:
        yield Client(Connection(wrapped))


@pytest.mark.parametrize("encrypted", [True, False])
def test_a_stop_is_announced_to_an_idle_client(
    server: ServerFactory, tmp_path: Path, *, encrypted: bool
) -> None:
    """RFC 9113 section 6.8"""
    pair = make(tmp_path, "site", "localhost", "IP:127.0.0.1") if encrypted else None
    words = pair.flags() if pair else H2C
    listen = f"{'https://' if pair else ''}127.0.0.1:0"
    running = server(*words, "--drain-idle", "20s", listen=(listen,))
    with connected(running, pair) as client:
        ends_gracefully(client, lambda: running.signal(signal.SIGTERM))
    assert running.wait() == 0


def test_a_reload_is_announced_to_an_idle_client(server: ServerFactory) -> None:
    """RFC 9113 section 6.8"""
    running = server(*H2C, "--drain-idle", "20s")
    with connect2(running.address) as client:
        ends_gracefully(client, lambda: running.signal(signal.SIGHUP))
    with connect2(running.address) as later:
        assert later.get().body == HELLO


def test_many_idle_clients_learn_of_a_stop(server: ServerFactory) -> None:
    """RFC 9113 section 6.8"""
    running = server(*H2C, "--drain-idle", "20s")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect2(running.address)) for _ in range(30)]
        for client in clients:
            assert client.get().body == HELLO
        running.signal(signal.SIGTERM)
        for client in clients:
            assert client.end() == Code.NO_ERROR
            assert goaways(client) == [2**31 - 1, 1]
    assert running.wait() == 0


def test_a_stop_does_not_wait_for_an_idle_client_that_is_silent(server: ServerFactory) -> None:
    """RFC 9113 section 6.8"""
    running = server(*H2C, "--drain-idle", "100ms", "--drain-timeout", "50s")
    with connect2(running.address, acknowledge=False) as client:
        assert client.get().body == HELLO
        running.signal(signal.SIGTERM)
        assert client.end() == Code.NO_ERROR
        # A worker that gets no CPU until drain-idle has ended says its last word no more.
        assert goaways(client) in ([2**31 - 1, 1], [2**31 - 1])
    assert running.wait() == 0


def test_the_age_of_an_idle_connection_ends_it_with_goaway(server: ServerFactory) -> None:
    """RFC 9113 section 6.8"""
    running = server(*H2C, "--connection-time", "300ms")
    with connect2(running.address) as client:
        assert client.get().body == HELLO
        assert client.end() == Code.NO_ERROR
        assert goaways(client)[-1] == 1


def test_an_idle_connection_ends_with_goaway(server: ServerFactory) -> None:
    running = server(*H2C, "--idle-timeout", "300ms")
    with connect2(running.address) as client:
        assert client.get().body == HELLO
        assert client.end() == Code.NO_ERROR


def test_the_client_s_end_is_answered(running: Server) -> None:
    """A client may half-close behind its requests."""
    with connect2(running.address) as client:
        streams = [client.ask("/hello.txt"), client.ask("/nothing")]
        client.acknowledge = client.refund = False
        client.connection.end_sending()
        assert [client.answer(stream).status for stream in streams] == [200, 404]
        client.end()


def arrivals(client: Client, *first: bytes, update: bytes | None = None) -> list[int]:
    """Requests the large file once with each priority, while the window of the connection is used
    up. Returns the places of these requests in the order in which their DATA frames arrive."""
    used = client.ask("/big.bin")
    client.send(window_update(used, WINDOW))
    assert received(client, WINDOW, used) == WINDOW
    streams = [client.ask("/big.bin", (b"priority", value)) for value in first]
    if update is not None:
        client.send(priority_update(streams[-1], update))
    client.send(*(window_update(stream, len(BIG)) for stream in streams))
    received(client, WINDOW, used, *streams)
    client.send(window_update(0, 10**7))
    for stream in streams:
        assert client.answer(stream).body == BIG
    frames = [frame.stream for frame in client.order if frame.kind == Kind.DATA]
    return [streams.index(stream) for stream in frames if stream != used]


NO_WINDOW = (WINDOW_OF_STREAMS, 0)


def test_urgent_answers_arrive_first(running: Server) -> None:
    """RFC 9218 section 10"""
    with connect2(running.address, NO_WINDOW, refund=False) as client:
        order = arrivals(client, b"u=7", b"u=3", b"u=0", b"u=5")
        last = [len(order) - order[::-1].index(place) for place in range(4)]
        assert sorted(range(4), key=lambda place: last[place]) == [2, 1, 3, 0]


def test_incremental_answers_take_turns(running: Server) -> None:
    """RFC 9218 section 10"""
    with connect2(running.address, NO_WINDOW, refund=False) as client:
        order = arrivals(client, b"i", b"i", b"i")
        half = order[: len(order) // 2]
        counts = [half.count(place) for place in range(3)]
        assert max(counts) - min(counts) <= 1, order


def test_other_answers_arrive_one_after_the_other(running: Server) -> None:
    """RFC 9218 section 10"""
    with connect2(running.address, NO_WINDOW, refund=False) as client:
        order = arrivals(client, b"u=3", b"", b"u=3, i=?0")
        assert order == sorted(order)


def test_priority_update_moves_a_waiting_answer(running: Server) -> None:
    """RFC 9218 section 7.1"""
    with connect2(running.address, NO_WINDOW, refund=False) as client:
        order = arrivals(client, b"u=3", b"u=3", update=b"u=0")
        assert order[0] == 1
        assert order[-1] == 0


def descriptors(running: Server) -> int:
    return sum(len(os.listdir(f"/proc/{worker.pid}/fd")) for worker in running.workers())


START = PREFACE + settings()
UPLOAD = headers(1, request(b"/", method=b"POST"), end=False)
BIG_GETS = b"".join(headers(stream, request(b"/big.bin")) for stream in range(1, 41, 2))
STATES = [
    PREFACE[:7],
    PREFACE,
    START[:-3],
    START + UPLOAD[:20],
    START + headers(1, request(), last=False),
    START + UPLOAD,
    START + UPLOAD + data(1, bytes(5000))[:3000],
    START + BIG_GETS,
    PREFACE + settings((WINDOW_OF_STREAMS, 0)) + BIG_GETS,
    PREFACE + settings((WINDOW_OF_STREAMS, 2**31 - 1)) + window_update(0, 2**30) + BIG_GETS,
    START + BIG_GETS + reset(3) + UPLOAD[:30],
    START + data(0),
]


@pytest.mark.parametrize("model", ["thread", "pool", "percore", "uring"])
def test_a_client_that_dies_in_any_state_leaves_nothing(server: ServerFactory, site: Path) -> None:
    """The file is larger than what the cache keeps in memory, so each answer needs a descriptor."""
    (site / "big.bin").write_bytes(BIG * 10)
    running = server(*H2C, "--workers", "1")
    with connect2(running.address) as first:
        assert first.get().body == HELLO
        before = descriptors(running)
        for state in STATES:
            for ends in (Connection.reset, Connection.close):
                connection = Connection.to(running.address, receive_buffer=4096)
                connection.send(state)
                if state.startswith(PREFACE) and len(state) % 2:
                    connection.socket.recv(1000)
                ends(connection)
        wait_for(running, lambda now: now["gauges"]["connections_open"] == 1)
        assert first.get("/big.bin").body == BIG * 10
        first.settle()
        wait_until(lambda: descriptors(running) <= before + 1, "the descriptors are closed")
    numbers = settled(running)
    assert numbers["gauges"]["http2_streams_open"] == 0
    assert numbers["gauges"]["http2_connections_open"] == 0


def test_counters_and_log_equal_what_clients_received(
    server: ServerFactory, site: Path, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    (site / "big.bin").write_bytes(BIG)
    running = server(*H2C, "--access-log", str(log))
    statuses = []
    for number in range(6):
        with connect2(running.address) as client:
            streams = [client.ask(path) for path in ("/hello.txt", "/x", "/big.bin") * number]
            statuses += [client.answer(stream).status for stream in streams]
    numbers = settled(running)["counters"]
    assert numbers["requests"] == numbers["http2_streams_opened"] == len(statuses)
    assert numbers["http2_streams_closed"] == len(statuses)
    assert numbers["http2_connections_begun"] == numbers["http2_connections_ended"] == 6
    running.stop()
    lines = log.read_text().splitlines()
    assert len(lines) == len(statuses)
    assert all(' HTTP/2.0" ' in line for line in lines)
    logged = [int(line.split('" ', 1)[1].split()[0]) for line in lines]
    assert sorted(logged) == sorted(statuses)


def test_a_request_with_too_many_fields_is_logged_with_its_line(
    server: ServerFactory, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    running = server(*H2C, "--access-log", str(log))
    with connect2(running.address) as client:
        assert client.get("/x", *[(b"cookie", b"a=b")] * 200).status == 431
    running.stop()
    assert '"GET /x HTTP/2.0" 431 ' in log.read_text()


def test_a_preface_at_an_address_without_h2c_is_refused(server: ServerFactory) -> None:
    running = server()
    with connect(running.address) as connection:
        connection.send(PREFACE + settings())
        assert connection.read().status == 505


def test_another_beginning_is_a_request_of_http_1(running: Server) -> None:
    """RFC 9113 section 3.3"""
    with connect(running.address) as connection:
        connection.send(b"PRI / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert connection.read().status == 501
