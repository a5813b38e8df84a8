# SPDX-License-Identifier: MIT
"""The client of the benchmark reads chunked answers, and the script compresses as scripts do."""

from __future__ import annotations

import socket
import threading
import zlib

import pytest

from bench.http1 import Answer, read_answer
from bench.measure import decode
from bench.process import BenchError
from bench.scenarios import SCRIPT_BYTES, script

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED = HEAD + b"5\r\nhello\r\nA\r\n, world!\r\n\r\n0\r\n\r\n"


def answer_to(data: bytes, step: int) -> Answer:
    """What the client reads of this answer, which arrives in pieces of `step` bytes."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(60)

        def send() -> None:
            for at in range(0, len(data), step):
                ours.sendall(data[at : at + step])
            ours.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            return read_answer(theirs)
        finally:
            thread.join()


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_chunks_are_joined(step: int) -> None:
    got = answer_to(CHUNKED, step)
    assert (got.status, got.head_bytes, got.body) == (200, len(HEAD), b"hello, world!\r\n")


def test_a_chunked_body_that_ends_early_is_an_error() -> None:
    with pytest.raises(BenchError, match="inside a chunked body"):
        answer_to(CHUNKED[:-5], 1000)


def test_a_body_of_another_coding_is_an_error() -> None:
    packer = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    packed = packer.compress(b"text") + packer.flush()
    assert decode(packed, "gzip") == b"text"
    with pytest.raises(BenchError, match="cannot be decoded as gzip"):
        decode(b"text", "gzip")


def test_the_script_compresses_to_about_a_third() -> None:
    text = script()
    assert len(text) == SCRIPT_BYTES
    assert script() == text
    assert SCRIPT_BYTES / 4 < len(zlib.compress(text, 6)) < SCRIPT_BYTES / 2.5
