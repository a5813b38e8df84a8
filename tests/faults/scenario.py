# SPDX-License-Identifier: MIT
"""A short life of a server in which one call fails, and the rules that hold all the same.

- No process dies by a signal. No process hangs or spins.
- An answer is the right one or an error. A connection that is cut has carried a part of one.
- One connection at most is cut, unless a worker ended. The master replaces that worker.
- Later clients are served as before, and a stop ends the server.
- A server that cannot start says why, and ends with status 1. The status is 2 where the fault
  hides something that the command line names.
- The pid file names the server, or still an earlier one.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import ssl
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.e2e.certificates import Pair
from tests.e2e.http2 import Client, EndedError, StreamResetError
from tests.e2e.running import RUNTIME, WEIR, Process
from tests.e2e.sockets import TcpSocket, tcp_sockets
from tests.e2e.wire import Answer, Connection, WireError, parse_head
from tests.faults.plan import Fault, Plan
from tests.waiting import LIMIT_S, wait_until

LIBRARY = Path(os.environ.get("FAIL_LIBRARY", WEIR.parent / "tests/libfail.so"))

REQUEST_ID = re.compile(rb"Request [0-9a-f]{16}")
DATE = re.compile(rb"\r\nDate: [^\r]{29}")
PAGE = re.compile(r"^statistics: http://127\.0\.0\.1:(\d+)/$", re.MULTILINE)
# The statuses of a server that lacks a resource.
ERRORS = {500, 503}

BIG = b"".join(b"%07d\n" % at for at in range(0, 300_000, 8))
PATHS = ["/small.txt", "/small.txt", "/big.bin", "/list/", "/none"]
RANGE = ("/big.bin", "Range: bytes=1000-1999")
# The password is `sesame`, and its hash is cheap.
USERS = "alice:$2b$04$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85RW\n"
PASSWORD = "Authorization: Basic YWxpY2U6c2VzYW1l"
BIG_REQUEST = ("/big.bin", PASSWORD)
REQUESTS: list[tuple[str, ...]] = [
    *((path, PASSWORD) for path in PATHS),
    (*RANGE, PASSWORD),
]

NAMES = ("one", "two", "three")

EARLIER = "4194304000\n"  # the pid file of a server that was killed. No process has this id

Answers = dict[tuple[str, ...], bytes]


def make_site(folder: Path) -> Path:
    """The site of the scenario: a small file, one too large for the cache, and a folder."""
    (folder / "list").mkdir(parents=True)
    (folder / "small.txt").write_text("a small file\n")
    (folder / "big.bin").write_bytes(BIG)
    for name in NAMES:
        (folder / "list" / name).write_text(name)
    return folder


class BrokenRuleError(AssertionError):
    """The server has broken a rule."""


@dataclass
class Life:
    """Observations of one server, from its start to its end."""

    status: int = 0
    messages: str = ""
    served: bool = False
    failed: bool = False  # the call that was to fail has failed
    cuts: int = 0
    errors: int = 0
    answers: Answers = field(default_factory=dict)
    # Calls of each kind until the server was ready, until the stop began, and until the end.
    ready: dict[str, int] = field(default_factory=dict)
    stop: dict[str, int] = field(default_factory=dict)
    end: dict[str, int] = field(default_factory=dict)


def masked(raw: bytes) -> bytes:
    return REQUEST_ID.sub(b"Request " + 16 * b"*", DATE.sub(b"\r\nDate: " + 29 * b"*", raw))


def is_beginning(part: bytes, whole: bytes) -> bool:
    """Whether `whole`, which is masked, begins with `part`. A masked text may be cut anywhere."""
    for mark, length in ((b"\r\nDate: ", 29), (b"Request ", 16)):
        if mark + length * b"*" not in whole:
            continue
        at = whole.index(mark + length * b"*") + len(mark)
        part = part[:at] + len(part[at : at + length]) * b"*" + part[at + length :]
    return whole.startswith(part)


def http2_words(request: tuple[str, ...]) -> list[Any]:
    """The arguments of Client.ask for a request."""
    lines = (line.split(": ") for line in request[1:])
    return [request[0], *((name.lower().encode(), value.encode()) for name, value in lines)]


def read_urls(fd: int) -> list[str]:
    """The addresses that the server reports to --ready-fd. None when it ends first."""
    text = b""
    while select.select([fd], [], [], LIMIT_S)[0]:
        if not (got := os.read(fd, 4096)):
            return text.decode().splitlines()
        text += got
    raise BrokenRuleError(f"the server is neither ready nor ended after {LIMIT_S:.0f} s")


def is_cut(error: OSError) -> bool:
    """Whether the server has ended the connection, perhaps with an alert of TLS."""
    if isinstance(error, ssl.SSLError):
        ended = isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
        return ended or "ALERT" in (error.reason or "")
    return isinstance(error, ConnectionResetError | BrokenPipeError)


class Scenario:
    """One server, one fault."""

    def __init__(self, model: str, site: Path, scratch: Path, expected: Answers | None) -> None:
        self.model = model
        self.site = site
        self.scratch = scratch
        self.expected = expected
        self.address = self.page = ("", 0)
        self.fault: Fault | None = None
        self.life = Life()
        self.last = ""  # the last answer that was not the right one
        self.unasked: Connection | None = None  # the last connection, while it has no answer

    # ---- connections ----

    def listener(self) -> list[str]:
        """The flags that say where the server listens."""
        return ["--listen", "127.0.0.1:0", "--h2c", "on"]

    def connect(self, protocol: str = "http/1.1") -> Connection | None:
        """A connection. None when the server has ended it before the first request."""
        del protocol
        return Connection.to(self.address, LIMIT_S)

    def note_cut(self, error: OSError, what: object, *, silent: bool = False) -> None:
        """Counts a connection that the server has ended. Any other error ends the life. `silent`:
        no data has arrived over the connection."""
        del silent
        if isinstance(error, TimeoutError):
            raise BrokenRuleError(f"{what}: silence after {LIMIT_S:.0f} s") from None
        if not is_cut(error):
            raise BrokenRuleError(f"{what}: {error!r}") from None
        self.life.cuts += 1
        self.last = f"{what}: cut"

    # ---- requests ----

    def judge(self, request: tuple[str, ...], answer: Answer) -> bool:
        """Whether it is the right answer, and not an error. A wrong answer ends the life."""
        raw = masked(answer.raw)
        right = self.life.answers.setdefault(request, raw)
        if self.expected is not None:
            right = self.expected[request]
        if raw == right:
            return True
        if answer.status not in ERRORS and not self.is_excused(request, answer):
            raise BrokenRuleError(f"{request}: a wrong answer: {answer.raw[:300]!r}")
        self.life.errors += 1
        self.last = f"{request}: {answer.raw[:300]!r}"
        return False

    def is_excused(self, request: tuple[str, ...], answer: Answer) -> bool:
        """Some faults make another answer the right one."""
        right = (self.expected or {}).get(request)
        if masked(answer.raw).replace(b"\r\nConnection: close", b"", 1) == right:
            return True
        fault = self.fault or Fault("", 0, "")
        if fault.failure == "EACCES":
            return answer.status == 403
        # A listing leaves out a file that cannot be read.
        rows = sum(f">{name}<".encode() in answer.body for name in NAMES)
        return fault.kind == "stat" and request[0] == "/list/" and rows == len(NAMES) - 1

    def judge_part(self, request: tuple[str, ...], part: bytes) -> None:
        """Checks the bytes before a cut: the beginning of the right answer, or of an error."""
        right = (self.expected or {}).get(request, b"")
        if is_beginning(part, right) or any(
            part.startswith(b"HTTP/1.1 %d " % status) for status in ERRORS
        ):
            return
        raise BrokenRuleError(f"{request}: a wrong byte before the cut: {part[:300]!r}")

    def ask(self, connection: Connection, request: tuple[str, ...]) -> Answer | None:
        """The answer. None when the connection was cut."""
        received: list[bytes] = []
        socket = connection.socket
        lines = [f"GET {request[0]} HTTP/1.1", "Host: a", *request[1:], "", ""]
        try:
            socket.sendall("\r\n".join(lines).encode())
            while not (answer := whole_answer(b"".join(received))):
                if not (got := socket.recv(256 * 1024)):
                    raise ConnectionResetError
                received.append(got)
        except OSError as error:
            first = connection is self.unasked
            self.note_cut(error, request, silent=first and not received)
            self.judge_part(request, b"".join(received))
            return None
        self.unasked = None
        return answer

    def visit(self, bystander: Connection) -> bool:
        """Makes every request while another client is connected. Whether all answers are right.

        The requests share a connection. After a close the next one is made over another.
        """
        right = True
        connection = self.connect()
        try:
            for request in REQUESTS:
                answer = self.ask(connection, request) if connection else None
                right = bool(answer and self.judge(request, answer)) and right
                if not answer or answer.closes:
                    if connection:
                        connection.close()
                    connection = self.connect()
        finally:
            if connection:
                connection.close()
        right = self.visit_http2() and right
        answer = self.ask(bystander, REQUESTS[0])
        right = bool(answer and self.judge(REQUESTS[0], answer)) and right
        return self.page_answers() and right

    def visit_http2(self) -> bool:
        """Makes all requests at the same time over one connection of HTTP/2. Whether all answers
        are right."""
        connection = self.connect("h2")
        if not connection:
            return False
        client = None
        try:
            client = Client(connection)
            streams = {request: client.ask(*http2_words(request)) for request in REQUESTS}
            right = [self.judge_stream(client, *each) for each in streams.items()]
        except OSError as error:
            self.note_cut(error, "HTTP/2", silent=not (client and client.order))
            return False
        finally:
            connection.close()
        self.life.cuts += client.cut
        return all(right)

    def judge_stream(self, client: Client, request: tuple[str, ...], stream: int) -> bool:
        """Whether the answer of a stream is the right one. A wrong answer ends the life."""
        key = (*request, "HTTP/2")
        try:
            answer = client.answer(stream)
        except (StreamResetError, EndedError) as error:
            self.life.errors += isinstance(error, StreamResetError)
            self.last = f"{key}: {type(error).__name__}: {error}"
            right = (self.expected or {}).get(key, b"").partition(b"\r\n\r\n")[2]
            got = client.streams[stream]
            if got.status not in ERRORS and not is_beginning(bytes(got.body), right):
                raise BrokenRuleError(f"{key}: a wrong byte: {bytes(got.body[:300])!r}") from None
            return False
        lines = [f"HTTP/2 {answer.status}", *(f"{n.title()}: {v}" for n, v in answer.fields)]
        raw = "\r\n".join([*lines, "", ""]).encode("latin-1") + answer.body
        return self.judge(key, replace(answer, raw=raw))

    def page_answers(self) -> bool:
        """Whether the statistics page shows numbers."""
        received = b""
        try:
            with socket.create_connection(self.page, LIMIT_S) as connection:
                connection.sendall(b"GET /stats.json HTTP/1.1\r\nHost: localhost\r\n")
                connection.sendall(b"Connection: close\r\n\r\n")
                while got := connection.recv(256 * 1024):
                    received += got
        except TimeoutError:
            raise BrokenRuleError("the statistics page does not answer") from None
        except OSError as cut:
            self.last = f"the statistics page: {cut}"
            return False
        self.last = f"the statistics page: {received[:300]!r}"
        return received.startswith(b"HTTP/1.1 200 ") and received.endswith(b"}\n")

    def attend(self, plan: Plan) -> None:
        """Visits until a visit during which nothing failed has only right answers."""

        def undisturbed() -> bool:
            failed_before = plan.failed
            bystander = self.connect()
            right = False
            try:
                answer = self.ask(bystander, REQUESTS[0]) if bystander else None
                right = bool(answer and self.judge(REQUESTS[0], answer))
                if bystander and answer and not answer.closes:
                    right = self.visit(bystander) and right
            finally:
                if bystander:
                    bystander.close()
            if not right and not plan.failed:
                raise BrokenRuleError(f"wrong before any call failed: {self.last}")
            return right and failed_before == plan.failed

        wait_until(undisturbed, lambda: f"right answers after the fault: {self.last}")

    # ---- from start to end ----

    def start(self, plan: Plan, stderr: Path) -> tuple[subprocess.Popen[bytes], int]:
        users = self.scratch / "users"
        users.write_text(USERS)
        self.pid_file.write_text(EARLIER)
        words = [str(WEIR), "serve", str(self.site), *self.listener(), "--listing"]
        words += [
            "--model",
            self.model,
            "--access-log",
            str(self.scratch / "access"),
        ]
        words += ["--pid-file", str(self.pid_file), "--auth", str(users)]
        # A worker has to end by itself, however busy the machine is.
        words += ["--kill-timeout", "1h"]
        environment = os.environ | {
            "LD_PRELOAD": str(LIBRARY),
            "FAIL_PLAN": str(plan.path),
            "RUNTIME_DIRECTORY": str(RUNTIME),
            "WEIR_STATS_LISTEN": "127.0.0.1:0",
        }
        ready, ready_end = os.pipe()
        try:
            with stderr.open("wb") as errors:
                popen = subprocess.Popen(
                    [*words, "--ready-fd", str(ready_end)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    pass_fds=(ready_end,),
                    env=environment,
                )
        except OSError:
            os.close(ready)
            raise
        finally:
            os.close(ready_end)
        return popen, ready

    @property
    def pid_file(self) -> Path:
        return self.scratch / "pid"

    def check_pid_file(self, pid: int) -> None:
        """It names this server, or still an earlier one."""
        text = self.pid_file.read_text()
        if text.split() not in ([str(pid)], EARLIER.split()):
            raise BrokenRuleError(f"the pid file of {pid} has {text!r}")

    def use(self, popen: subprocess.Popen[bytes], plan: Plan) -> None:
        """Clients visit the server. Then the stop begins."""
        before = set(Process(popen.pid, "").children())
        self.attend(plan)
        after = Process(popen.pid, "").children()
        workers = [process for process in before if process in after]
        # A worker that ends takes its connections with it. Otherwise one connection had the fault.
        most = 1 if len(workers) == len(before) else 2
        if self.life.cuts > most:
            raise BrokenRuleError(f"{self.life.cuts} connections were cut")
        self.life.stop = plan.counts()
        popen.send_signal(signal.SIGTERM)

    def end(self, popen: subprocess.Popen[bytes], seen: set[Process]) -> None:
        try:
            self.life.status = popen.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise BrokenRuleError(f"the server did not stop in {LIMIT_S:.0f} s") from None
        if left := [process for process in seen if process.alive]:
            raise BrokenRuleError(f"still running: {left}")

    def run(self, fault: Fault | None = None) -> Life:
        self.fault = fault
        stderr = self.scratch / "stderr"
        seen: set[Process] = set()
        with Plan(self.scratch / "plan", fault) as plan:
            popen, ready = self.start(plan, stderr)
            try:
                with os.fdopen(ready, "rb"):
                    urls = read_urls(ready)
                self.life.ready = plan.counts()
                self.life.served = bool(urls)
                if urls:
                    self.check_pid_file(popen.pid)
                    host, port = urls[0].partition("://")[2].rstrip("/").split(":")
                    self.address = (host, int(port))
                    found = PAGE.search(stderr.read_text())
                    self.page = (host, int(found[1]) if found else 0)
                    self.use(popen, plan)
                    seen.update(Process(popen.pid, "").descendants())
                self.end(popen, seen)
            except AssertionError as broken:
                raise BrokenRuleError(f"{broken}\n{stderr.read_text()}") from None
            finally:
                end_all(popen)
                self.life.messages = stderr.read_text(errors="replace")
                self.life.end = plan.counts()
                self.life.failed = plan.failed
            self.check_end(plan)
        return self.life

    def check_end(self, plan: Plan) -> None:
        life = self.life
        said = f"\n{life.messages}"
        if plan.killed:
            raise BrokenRuleError(f"a process was killed by a signal{said}")
        for sign in ("broken invariant", "Sanitizer", "runtime error"):
            if sign in life.messages:
                raise BrokenRuleError(f"{sign}{said}")
        if life.served and life.status != 0:
            raise BrokenRuleError(f"exit status {life.status}{said}")
        if not life.served:
            if life.status not in (1, 2):
                raise BrokenRuleError(f"exit status {life.status} where it could not start{said}")
            if self.fault and cause_of(self.fault) not in life.messages:
                raise BrokenRuleError(f"it does not say `{cause_of(self.fault)}`{said}")


class SealedScenario(Scenario):
    """The same over TLS. When all clients have gone, no process has a connection left."""

    def __init__(
        self, model: str, site: Path, scratch: Path, expected: Answers | None, pair: Pair
    ) -> None:
        super().__init__(model, site, scratch, expected)
        self.pair = pair
        self.context = ssl.create_default_context(cafile=str(pair.certificate))

    def listener(self) -> list[str]:
        return ["--listen", "https://127.0.0.1:0", *self.pair.flags()]

    def connect(self, protocol: str = "http/1.1") -> Connection | None:
        self.context.set_alpn_protocols([protocol])
        plain = Connection.to(self.address, LIMIT_S)
        try:
            made = Connection(self.context.wrap_socket(plain.socket, server_hostname="localhost"))
        except OSError as error:
            plain.close()
            self.note_cut(error, f"the handshake for {protocol}", silent=True)
            return None
        self.unasked = made
        return made

    def note_cut(self, error: OSError, what: object, *, silent: bool = False) -> None:
        """A server that could not set its keys sends the alert without them. The client may have
        ended its handshake by then."""
        lacks_memory = self.fault and self.fault.kind == "memory"
        if silent and lacks_memory and isinstance(error, ssl.SSLError):
            error = ConnectionResetError(str(error))
        super().note_cut(error, what)

    def attend(self, plan: Plan) -> None:
        super().attend(plan)
        wait_until(
            lambda: not self.connections(), lambda: f"no connection is left: {self.connections()}"
        )

    def connections(self) -> list[TcpSocket]:
        """The accepted connections that a process holds."""
        return [s for s in tcp_sockets(self.address[1]) if not s.listens and s.inode != 0]


def whole_answer(data: bytes) -> Answer | None:
    """The answer, when it is whole. No byte may follow it."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return None
    try:
        status, fields = parse_head(head)
    except WireError as wrong:
        raise BrokenRuleError(f"no answer: {wrong}") from None
    lengths = [int(value) for name, value in fields if name == "Content-Length"]
    if len(lengths) != 1 or len(body) > lengths[0]:
        raise BrokenRuleError(f"framed wrongly: {data[:300]!r}")
    return Answer(status, fields, body, data) if len(body) == lengths[0] else None


def cause_of(fault: Fault) -> str:
    return "emory" if fault.kind == "memory" else os.strerror(fault.code)


def end_all(popen: subprocess.Popen[bytes]) -> None:
    """Ends the processes of a server that failed the test."""
    if popen.poll() is None:
        for process in [*Process(popen.pid, "").descendants()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        popen.kill()
        popen.wait()
