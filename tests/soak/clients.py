# SPDX-License-Identifier: MIT
"""The clients of a soak: each has a temper, and counts what it received.

A client marks its requests with the name of its temper, so that the lines of the access log can be
compared with the counts of each temper.

On a busy machine a client may get no CPU for seconds. A timeout of the server then cuts its answer,
rightly. So a cut is a fault of the server only while the client's requests are younger than each
timeout (subject.py).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.e2e.wire import WireError, body_length, parse_head
from tests.soak.site import Site

PIPELINED = 8
PAUSE_S = 0.2
SLOW_PIECE_BYTES = 8 * 1024
YOUNG_S = 15  # less than each timeout of the server
GARBAGE = (
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),
    b"\r\n" * 2000,
    b"GET / HTTP/1.1\r\nHost: a\r\nx: " + b"a" * 70_000 + b"\r\n\r\n",
)


class GoneError(Exception):
    """The server has closed the connection. `between` tells that no request was unanswered."""

    def __init__(self, *, between: bool) -> None:
        super().__init__()
        self.between = between


@dataclass
class Count:
    """What the clients of one temper have received."""

    connections: int = 0
    refused: int = 0  # no connection, or one that ended before its first answer
    answers: Counter[int] = field(default_factory=Counter)  # by status
    unknown: int = 0  # requests whose answer did not arrive whole: the server may have answered
    cut: int = 0  # answers to young requests that began and did not end
    late: int = 0  # the same, to requests that are not young
    wrong: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.answers.total()


class Connection:
    """One connection of a client. It counts answers, and requests that stay without one."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Count
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.count = count
        self.outstanding = 0
        self.closes = False
        self.sent_s = time.monotonic()

    def send(self, *paths: str, close: bool = False) -> None:
        option = "\r\nConnection: close" if close else ""
        lines = [f"GET {path} HTTP/1.1\r\nHost: a{option}\r\n\r\n" for path in paths]
        self.writer.write("".join(lines).encode())
        self.outstanding += len(paths)
        self.sent_s = time.monotonic()

    def count_cut(self) -> None:
        if time.monotonic() - self.sent_s < YOUNG_S:
            self.count.cut += 1
        else:
            self.count.late += 1

    async def head(self) -> tuple[int, int]:
        """Status and length of the body of the next answer."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, OSError) as error:
            if isinstance(error, asyncio.IncompleteReadError) and error.partial:
                self.count_cut()
            raise GoneError(between=self.outstanding == 0) from None
        status, fields = parse_head(head[:-4])
        self.closes = ("Connection", "close") in fields
        return status, body_length(status, fields, bodiless=False)

    async def body(self, length: int, *, slowly: bool = False) -> bytes:
        pieces: list[bytes] = []
        while length > 0:
            try:
                piece = await self.reader.read(min(length, SLOW_PIECE_BYTES if slowly else length))
            except OSError:
                piece = b""
            if not piece:
                self.count_cut()
                raise GoneError(between=False)
            pieces.append(piece)
            length -= len(piece)
            if slowly:
                await asyncio.sleep(0.01)
        return b"".join(pieces)

    async def answer(self, site: Site, path: str, *, slowly: bool = False) -> None:
        """Reads one answer, counts it, and compares it with the versions of the file."""
        status, length = await self.head()
        body = await self.body(length, slowly=slowly)
        self.outstanding -= 1
        self.count.answers[status] += 1
        if trouble := site.trouble(path, status, body):
            self.count.wrong.append(trouble)


class Crowd:
    """Clients of every temper. Their number can change at any time."""

    def __init__(self, address: tuple[str, int], site: Site, chance: random.Random) -> None:
        self.address = address
        self.site = site
        self.chance = chance
        self.counts = {temper: Count() for temper in TEMPERS}
        self.tasks: set[asyncio.Task[None]] = set()
        self.wanted = 0
        self.failures: list[str] = []

    def resize(self, size: int) -> None:
        """Starts clients. Those that are too many end at their next request."""
        self.wanted = size
        while len(self.tasks) < size:
            temper = self.chance.choices(list(TEMPERS), SHARES)[0]
            task = asyncio.create_task(self.live(temper))
            self.tasks.add(task)
            task.add_done_callback(self.ended)

    def ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.failures.append(f"a client failed: {error!r}")

    @property
    def leaving(self) -> bool:
        return len(self.tasks) > self.wanted

    async def end(self) -> None:
        """Waits until every client has received its answers and has gone."""
        self.wanted = 0
        while self.tasks:
            await asyncio.wait(self.tasks)

    async def live(self, temper: str) -> None:
        """Connects again and again, until there are too many clients."""
        count = self.counts[temper]
        while not self.leaving:
            try:
                reader, writer = await asyncio.open_connection(*self.address)
            except OSError:
                count.refused += 1
                await asyncio.sleep(PAUSE_S)
                continue
            count.connections += 1
            connection = Connection(reader, writer, count)
            try:
                await TEMPERS[temper](self, connection, f"soak={temper}")
            except GoneError:
                count.unknown += connection.outstanding
                await asyncio.sleep(PAUSE_S)
            except WireError as error:
                count.wrong.append(str(error))
            except OSError:
                count.unknown += connection.outstanding
            finally:
                writer.transport.abort()

    async def pause(self) -> None:
        await asyncio.sleep(PAUSE_S * self.chance.uniform(0.5, 1.5))


async def fast(crowd: Crowd, connection: Connection, mark: str) -> None:
    while not crowd.leaving and not connection.closes:
        path = crowd.site.choose(crowd.chance)
        connection.send(f"{path}?{mark}")
        await connection.answer(crowd.site, path)
        await crowd.pause()


async def closing(crowd: Crowd, connection: Connection, mark: str) -> None:
    path = crowd.site.choose(crowd.chance)
    connection.send(f"{path}?{mark}", close=True)
    await connection.answer(crowd.site, path)
    await crowd.pause()


async def pipelining(crowd: Crowd, connection: Connection, mark: str) -> None:
    while not crowd.leaving and not connection.closes:
        paths = [crowd.site.choose(crowd.chance) for _ in range(PIPELINED)]
        connection.send(*[f"{path}?{mark}" for path in paths])
        for path in paths:
            await connection.answer(crowd.site, path)
            if connection.closes:
                break
        await crowd.pause()
    # Requests behind the last answer of a connection get no answer.
    connection.outstanding = 0


async def slow(crowd: Crowd, connection: Connection, mark: str) -> None:
    path = crowd.site.large
    connection.send(f"{path}?{mark}")
    await connection.answer(crowd.site, path, slowly=True)


async def aborting(crowd: Crowd, connection: Connection, mark: str) -> None:
    connection.send(f"{crowd.site.large}?{mark}")
    await crowd.pause()
    raise GoneError(between=False)


async def malformed(crowd: Crowd, connection: Connection, mark: str) -> None:
    """Sends garbage. Its answer has no mark in the log, as no request could be read."""
    del mark
    connection.writer.write(crowd.chance.choice(GARBAGE))
    try:
        status, length = await connection.head()
        await connection.body(length)
    except GoneError:
        # Bytes that are still unread reset a connection.
        connection.count.cut = connection.count.late = 0
        raise
    connection.count.answers[status] += 1
    if status < 400 or not connection.closes:
        connection.count.wrong.append(f"{status} for garbage")
    await crowd.pause()


async def idle(crowd: Crowd, connection: Connection, mark: str) -> None:
    """Connects, and sends nothing until the server closes or the client has to go."""
    del mark
    while not crowd.leaving:
        try:
            await asyncio.wait_for(connection.reader.read(1), 1)
        except TimeoutError:
            continue
        return


Temper = Callable[[Crowd, Connection, str], Awaitable[None]]
TEMPERS: dict[str, Temper] = {
    temper.__name__: temper
    for temper in (fast, closing, pipelining, slow, aborting, malformed, idle)
}
SHARES = (50, 15, 5, 5, 5, 5, 15)
# Every answer to these has one line with their mark.
MARKED = ("fast", "closing", "pipelining", "slow")
