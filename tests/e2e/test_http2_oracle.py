# SPDX-License-Identifier: MIT
"""weir beside the server of the Python package h2: the same frames, and the same errors.

Random frames go to both. After each frame, both must have reset the same streams and be open, or
have failed with the same code. Where they differ, `explained` knows why, and the script ends.
SEED=n in the environment begins with other scripts.
tests/property/http2_frames_test.c does the same with nghttp2, within one process.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, StreamEnded
from h2.exceptions import ProtocolError

from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import (
    ACK,
    END_HEADERS,
    PREFACE,
    Client,
    Code,
    Kind,
    connect2,
    continuation,
    data,
    frame,
    headers,
    ping,
    priority,
    read_frames,
    request,
    reset,
    settings,
    window_update,
)

SCRIPTS, STEPS = 150, 25
ONE_MODEL = pytest.mark.parametrize("model", ["percore"])  # no model reads frames
TRAILERS = b"\x00\x01x\x01y"


@dataclass
class Replies:
    """What a server has sent after one frame."""

    failed: int | None = None  # the code of GOAWAY
    resets: dict[int, int] = field(default_factory=dict)


class Peer:
    """The server of h2. It answers each request that has ended, as weir answers HEAD."""

    def __init__(self) -> None:
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self.h2.initiate_connection()

    def feed(self, sent: bytes) -> Replies:
        replies = Replies()
        try:
            for event in self.h2.receive_data(sent):
                if isinstance(event, DataReceived) and event.stream_id:
                    length = event.flow_controlled_length
                    self.h2.acknowledge_received_data(length, event.stream_id)
                if isinstance(event, StreamEnded) and event.stream_id:
                    self.h2.send_headers(event.stream_id, [(":status", "200")], end_stream=True)
        except ProtocolError as error:
            replies.failed = int(error.error_code)
        for each in read_frames(self.h2.data_to_send()):
            if each.kind == Kind.RST_STREAM:
                replies.resets[each.stream] = int.from_bytes(each.payload, "big")
        return replies


def feed(client: Client, sent: bytes, number: int) -> Replies:
    """Sends a frame and a PING behind it, and reads until the PING returns or weir closes."""
    begin = len(client.order)
    mark = number.to_bytes(8, "big")
    client.send(sent, ping(mark))
    while mark not in client.pongs and client.goaway is None and client.receive():
        pass
    replies = Replies(failed=client.goaway[1] if client.goaway else None)
    for each in client.order[begin:]:
        if each.kind == Kind.RST_STREAM:
            replies.resets[each.stream] = int.from_bytes(each.payload, "big")
    return replies


class Script:
    """A random client."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.next = 1
        self.open: list[int] = []

    def stream(self) -> int:
        """Mostly an open stream, at times any other."""
        if self.open and self.random.random() < 0.93:
            return self.random.choice(self.open)
        return self.random.choice([self.next, max(1, self.next - 2), 1, 0, 2])

    def last(self) -> int:
        """The same, and the client sends no more on it."""
        stream = self.stream()
        if stream in self.open:
            self.open.remove(stream)
        return stream

    def request(self) -> bytes:
        stream, end = self.next, self.random.random() < 0.4
        self.next += self.random.choice([2, 2, 2, 4])
        if not end:
            self.open.append(stream)
        block = request(method=b"HEAD")
        if self.random.random() < 0.3:
            at = self.random.randrange(len(block))
            first = headers(stream, block[:at], end=end, last=False)
            return first + continuation(stream, block[at:])
        return headers(stream, block, end=end, pad=self.random.choice([None, None, 0, 9]))

    def data(self) -> bytes:
        if not self.open and self.random.random() < 0.9:
            return self.request()
        stream, end = self.stream(), self.random.random() < 0.2
        if end and stream in self.open:
            self.open.remove(stream)
        size = self.random.choice([0, 1, 500, 16_000])
        return data(stream, bytes(size), end=end, pad=self.random.choice([None, None, 0, 40]))

    def settings(self) -> bytes:
        name = self.random.choice([1, 2, 3, 4, 4, 5, 6, 0x7777])
        value = self.random.choice([0, 1, 16_384, 100_000, 2**24, 2**31])
        return settings((name, value if self.random.random() < 0.2 else name % 2 * 16_384))

    def wrong(self) -> bytes:
        """A frame whose form or place is wrong."""
        stream = self.stream()
        return self.random.choice(
            [
                frame(Kind.RST_STREAM, stream, bytes(3)),
                frame(Kind.WINDOW_UPDATE, stream, bytes(5)),
                frame(Kind.PING, 0, bytes(7)),
                frame(Kind.PING, 1, bytes(8)),
                frame(Kind.SETTINGS, 0, bytes(5)),
                frame(Kind.SETTINGS, 1, b""),
                frame(Kind.SETTINGS, 0, bytes(6), ACK),
                frame(Kind.PUSH_PROMISE, stream, b"\0\0\0\2\x82", END_HEADERS),
                frame(Kind.CONTINUATION, stream, b"\x82", END_HEADERS),
                frame(Kind.GOAWAY, 1, bytes(8)),
                frame(Kind.DATA, stream, b"\4abc", 0x8),
                frame(Kind.DATA, stream, bytes(16_385)),
                headers(stream, request(method=b"HEAD")),
                headers(stream, TRAILERS, end=False),
                window_update(stream, 0),
                window_update(stream, 2**31 - 1),
            ]
        )

    def frame(self) -> bytes:
        match self.random.choices(range(9), [6, 6, 2, 2, 2, 1, 1, 1, 1])[0]:
            case 0:
                return self.request()
            case 1:
                return self.data()
            case 2:
                return window_update(self.stream(), self.random.choice([1, 1000, 2**30]))
            case 3:
                return self.settings()
            case 4:
                return reset(self.last(), self.random.choice([0, 8, 0xFFFF]))
            case 5:
                return priority(self.stream() or 1, 0, 200)
            case 6:
                return frame(0xEE, self.stream(), b"an extension", 0xFF)
            case 7:
                return headers(self.last(), TRAILERS, end=True)
            case _:
                return self.wrong()


def explained(kind: int, ours: Replies, theirs: Replies) -> bool:
    """Whether a difference is one of these."""
    ours_code = next(iter(ours.resets.values()), None)
    theirs_code = next(iter(theirs.resets.values()), None)
    match kind:
        case Kind.DATA if ours.failed == Code.FRAME_SIZE_ERROR:
            # A frame that is too long, on stream 0: weir names the length, h2 the stream.
            return theirs.failed == Code.PROTOCOL_ERROR
        case Kind.DATA | Kind.HEADERS if theirs_code == Code.STREAM_CLOSED:
            # On a closed stream, h2 repeats RST_STREAM. weir fails the connection when the client
            # has ended the stream, and ignores the frame when weir has reset it.
            return ours.failed == Code.STREAM_CLOSED or ours == Replies()
        case Kind.HEADERS | Kind.WINDOW_UPDATE if ours_code == Code.PROTOCOL_ERROR:
            # RFC 9113 sections 6.9 and 8.1.1 have a stream error. h2 fails the connection.
            return theirs.failed == Code.PROTOCOL_ERROR
        case Kind.CONTINUATION:  # RFC 9113 section 6.10; h2 names the state of the stream
            return ours.failed == Code.PROTOCOL_ERROR and theirs.failed == Code.STREAM_CLOSED
        case Kind.RST_STREAM:  # RFC 9113 section 6.4: h2 ignores it on stream 0 and on idle ones
            return ours.failed == Code.PROTOCOL_ERROR and theirs == Replies()
        case Kind.SETTINGS:  # RFC 9113 section 6.5: h2 has another code for a wrong length
            return ours.failed == Code.FRAME_SIZE_ERROR and theirs.failed == Code.PROTOCOL_ERROR
        case Kind.WINDOW_UPDATE:  # RFC 9113 section 5.1.1: a stream that was skipped is closed
            return ours == Replies() and theirs.failed == Code.PROTOCOL_ERROR
    return False


@ONE_MODEL
def test_errors_are_those_of_h2(server: ServerFactory) -> None:
    running = server("--h2c", "on")
    start = int(os.environ.get("SEED", "1"))
    steps = 0
    for seed in range(start, start + SCRIPTS):
        script, peer = Script(seed), Peer()
        peer.feed(PREFACE + settings())
        with connect2(running.address, refund=False) as client:
            for number in range(1, STEPS + 1):
                sent = script.frame()
                ours, theirs = feed(client, sent, number), peer.feed(sent)
                steps += 1
                first = next(read_frames(sent))
                if ours != theirs and not explained(first.kind, ours, theirs):
                    where = f"seed {seed}, step {number}, {first[:3]}"
                    raise AssertionError(f"{where}: weir {ours}, h2 {theirs}")
                if ours != theirs or ours.failed is not None:
                    break
    assert steps > 3 * SCRIPTS
