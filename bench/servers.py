# SPDX-License-Identifier: MIT
"""The servers under measurement: how an expert would set each up for this, and how it starts.

Every server is one process or one worker on one core, with logs off except weir's, which is on.
Adding a server is one function that returns a Launch and one line in PEERS.
"""

import os
import pwd
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from bench import http1, process
from bench.certificate import SUITES, Identity
from bench.process import BenchError
from bench.scenarios import RESUMED, Scenario

FLOOR = "floor"
FLOOR_FILES = "floor-files"  # opens, reads and closes the file of each request
FLOOR_SANDBOX = "floor-sandbox"  # the same in the sandbox of a worker of weir
FLOORS = (FLOOR, FLOOR_FILES, FLOOR_SANDBOX)  # their answers are as long as those of weir
# Only the serving of files is measured.
os.environ["WEIR_STATS_LISTEN"] = "off"

WEIR = "weir"
OTHER = "other"  # a second weir, for comparing two builds
TUNED = "nginx-tuned"
DESCRIPTORS = 20_000
CONNECTIONS_MAX = 16_384
OPEN_FILES_MOST = 19_000  # of nginx-tuned, where there are many files
KEEP_ALIVE_S = 120
READY_WITHIN_S = 10.0
FLOOR_IN_MEMORY_MAX = 256 * 1024


@dataclass(frozen=True, kw_only=True)
class Setup:
    """How to start a server for a measurement."""

    root: Path  # the files to serve
    work: Path  # for its configuration and logs
    cpu: process.Cpus | None  # None: any
    scenario: Scenario
    congestion: str | None = None  # of the listener; only floor and weir support it
    head_bytes: int = 192  # floor only: the answer to imitate
    body_bytes: int = 308
    file: Path | None = None  # floor only: where a big body comes from
    identity: Identity | None = None  # None: plain HTTP


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A command to run; `port` is None when the server reports its own through --ready-fd."""

    argv: list[str]
    port: int | None = None
    config: str = ""
    identity: Identity | None = None  # None: plain HTTP


@dataclass(frozen=True, kw_only=True)
class Product:
    """One server that can be measured."""

    name: str
    version: str
    launch: Callable[[Setup], Launch]


@dataclass(kw_only=True)
class Running:
    """A started server."""

    product: Product
    launch: Launch
    port: int
    process: subprocess.Popen[bytes]
    log: Path = field(repr=False)

    @property
    def is_tls(self) -> bool:
        """Whether it serves https."""
        return self.launch.identity is not None

    def url(self, path: str, port: int | None = None) -> str:
        """The URL of a path, on the server's port or on another one."""
        scheme = "https" if self.is_tls else "http"
        return f"{scheme}://127.0.0.1:{port or self.port}{path}"

    def client_environment(self) -> dict[str, str] | None:
        """The environment for its clients. It limits them to the TLS that is measured."""
        if self.launch.identity is None:
            return None
        return {**os.environ, "OPENSSL_CONF": str(self.launch.identity.client_settings)}

    def check_alive(self) -> None:
        """Raises BenchError with what the server last said when it has ended."""
        status = self.process.poll()
        if status is not None:
            said = self.log.read_text(errors="replace").strip().splitlines()[-5:]
            raise BenchError(f"{self.product.name} ended with {status}: {' / '.join(said)}")

    def stop(self) -> None:
        """Ends it and all its processes."""
        process.stop(self.process)


def _user_directive(directive: str) -> str:
    """Keeps a server that root starts from changing to a user that cannot read the files."""
    return f"{directive} {pwd.getpwuid(0).pw_name};\n" if os.geteuid() == 0 else ""


def _floor(binary: Path, name: str) -> Callable[[Setup], Launch]:
    def launch(setup: Setup) -> Launch:
        argv = [str(binary), "--head", str(setup.head_bytes)]
        argv += ["--root", str(setup.root)] if name != FLOOR else []
        argv += ["--sandbox"] if name == FLOOR_SANDBOX else []
        if setup.file is not None and setup.body_bytes > FLOOR_IN_MEMORY_MAX:
            argv += ["--file", str(setup.file)]
        else:
            argv += ["--body", str(setup.body_bytes)]
        argv += ["--close"] if setup.scenario.closes else []
        argv += ["--congestion", setup.congestion] if setup.congestion else []
        return Launch(argv=argv)

    return launch


def _weir(binary: Path, model: str, extra: list[str]) -> Callable[[Setup], Launch]:
    def launch(setup: Setup) -> Launch:
        scheme = "https://" if setup.identity else ""
        argv = [str(binary), "serve", str(setup.root), "--listen", f"{scheme}127.0.0.1:0"]
        if setup.identity:
            argv += ["--tls-certificate", str(setup.identity.certificate)]
            argv += ["--tls-key", str(setup.identity.key)]
        argv += ["--h2c", "on"] if setup.scenario.streams and not setup.identity else []
        argv += ["--model", model, "--listing", "off"]
        argv += ["--access-log", str(setup.work / "access.log")]
        argv += ["--congestion", setup.congestion] if setup.congestion else []
        return Launch(argv=argv + extra, identity=setup.identity)

    return launch


@dataclass(frozen=True, kw_only=True)
class NginxWays:
    """How nginx gets a file into a socket; the defaults are what its guides recommend."""

    sendfile: str = "on"
    tcp_nopush: str = "on"
    deferred: str = ""
    open_files: int = 1000


def _nginx_ways(scenario: Scenario) -> NginxWays:
    """The settings found to cost nginx 1.22 least under this load (docs/performance.md)."""
    if scenario.closes:
        return NginxWays(deferred=" deferred")
    if scenario.bulk:
        return NginxWays(tcp_nopush="off")
    if scenario.depth > 1:
        return NginxWays()
    if scenario.many:
        return NginxWays(sendfile="off", tcp_nopush="off", open_files=OPEN_FILES_MOST)
    return NginxWays(sendfile="off", tcp_nopush="off")


def _nginx_tls(setup: Setup) -> str:
    """The directives for TLS. Tickets need no cache of sessions, which costs more."""
    if setup.identity is None:
        return ""
    return f"""\
        ssl_certificate {setup.identity.certificate};
        ssl_certificate_key {setup.identity.key};
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_prefer_server_ciphers on;
        ssl_conf_command Ciphersuites {":".join(SUITES)};
        ssl_ecdh_curve X25519:prime256v1;
        ssl_session_cache none;
        ssl_session_timeout 1h;
        ssl_session_tickets on;
        ssl_buffer_size {"16k" if setup.scenario.bulk else "4k"};
"""


def _nginx(binary: str, *, is_tuned: bool = False) -> Callable[[Setup], Launch]:
    def launch(setup: Setup) -> Launch:
        ways = _nginx_ways(setup.scenario) if is_tuned else NginxWays()
        protocols = (" ssl" if setup.identity else "") + (" http2" * bool(setup.scenario.streams))
        port = http1.free_port()
        temp = "".join(
            f"    {kind}_temp_path {setup.work}/{kind};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        config = f"""\
{_user_directive("user")}daemon off;
pid {setup.work}/nginx.pid;
error_log stderr crit;
worker_processes 1;
worker_rlimit_nofile {DESCRIPTORS};
events {{
    use epoll;
    worker_connections {CONNECTIONS_MAX};
    multi_accept on;
    accept_mutex off;
}}
http {{
{temp}    types {{ text/html html; }}
    default_type application/octet-stream;
    access_log off;
    log_not_found off;
    sendfile {ways.sendfile};
    tcp_nopush {ways.tcp_nopush};
    tcp_nodelay on;
    keepalive_timeout {KEEP_ALIVE_S};
    keepalive_requests 1000000000;
    reset_timedout_connection on;
    open_file_cache max={ways.open_files} inactive=60s;
    open_file_cache_valid 60s;
    open_file_cache_errors on;
    server {{
        listen 127.0.0.1:{port} backlog=4096{ways.deferred}{protocols};
        root {setup.root};
{_nginx_tls(setup)}    }}
}}
"""
        path = setup.work / "nginx.conf"
        path.write_text(config)
        argv = [binary, "-p", str(setup.work), "-c", str(path), "-e", "stderr"]
        return Launch(argv=argv, port=port, config=config, identity=setup.identity)

    return launch


def _h2o_tls(setup: Setup) -> str:
    """The listener's TLS. h2o has no setting for the cipher suites of TLS 1.3.

    With its tickets h2o 2.2 sends no new ticket after a resumption, so that a client that uses each
    ticket once resumes every second time. With its cache that client resumes every time.
    """
    if setup.identity is None:
        return ""
    return f"""\
  ssl:
    certificate-file: {setup.identity.certificate}
    key-file: {setup.identity.key}
    minimum-version: TLSv1.2
    cipher-preference: server
    neverbleed: OFF
ssl-session-resumption:
  mode: {"cache" if setup.scenario.handshake == RESUMED else "all"}
"""


def _h2o(binary: str) -> Callable[[Setup], Launch]:
    def launch(setup: Setup) -> Launch:
        port = http1.free_port()
        user = f"user: {pwd.getpwuid(0).pw_name}\n" if os.geteuid() == 0 else ""
        config = f"""\
{user}num-threads: 1
max-connections: {CONNECTIONS_MAX}
http1-request-timeout: {KEEP_ALIVE_S}
listen:
  host: 127.0.0.1
  port: {port}
{_h2o_tls(setup)}hosts:
  default:
    paths:
      /:
        file.dir: {setup.root}
"""
        path = setup.work / "h2o.conf"
        path.write_text(config)
        argv = [binary, "-m", "worker", "-c", str(path)]
        if setup.identity:
            argv = ["env", f"OPENSSL_CONF={setup.identity.server_settings}", *argv]
        return Launch(argv=argv, port=port, config=config, identity=setup.identity)

    return launch


def _lighttpd_tls(setup: Setup) -> str:
    """The settings for TLS. lighttpd has tickets without a setting, and no other sessions."""
    if setup.identity is None:
        return ""
    return f"""\
ssl.engine = "enable"
ssl.pemfile = "{setup.identity.certificate}"
ssl.privkey = "{setup.identity.key}"
ssl.openssl.ssl-conf-cmd = (
    "MinProtocol" => "TLSv1.2",
    "Options" => "ServerPreference",
    "Ciphersuites" => "{":".join(SUITES)}",
    "Groups" => "X25519:P-256"
)
"""


def _lighttpd(binary: str) -> Callable[[Setup], Launch]:
    def launch(setup: Setup) -> Launch:
        port = http1.free_port()
        config = f"""\
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{setup.root}"
server.modules = ({'"mod_openssl"' if setup.identity else ""})
server.event-handler = "linux-sysepoll"
server.network-backend = "sendfile"
server.listen-backlog = 4096
server.max-fds = {DESCRIPTORS}
server.max-connections = {CONNECTIONS_MAX}
server.max-keep-alive-idle = {KEEP_ALIVE_S}
server.max-keep-alive-requests = 65535
server.stat-cache-engine = "simple"
mimetype.assign = ( ".html" => "text/html", "" => "application/octet-stream" )
{_lighttpd_tls(setup)}"""
        path = setup.work / "lighttpd.conf"
        path.write_text(config)
        argv = [binary, "-D", "-f", str(path)]
        return Launch(argv=argv, port=port, config=config, identity=setup.identity)

    return launch


def _caddy(binary: str) -> Callable[[Setup], Launch]:
    def launch(setup: Setup) -> Launch:
        port = http1.free_port()
        config = f"""\
{{
    admin off
    auto_https off
    storage file_system {setup.work}/caddy
    log {{
        output stderr
        level ERROR
    }}
    servers {{
        timeouts {{
            idle {KEEP_ALIVE_S}s
        }}
    }}
}}
http://127.0.0.1:{port} {{
    bind 127.0.0.1
    root * {setup.root}
    file_server
}}
"""
        path = setup.work / "Caddyfile"
        path.write_text(config)
        # Caddy keeps files in these folders. They must not be the user's own.
        argv = ["env", *(f"{name}={setup.work}" for name in ("HOME", "XDG_CONFIG_HOME"))]
        argv += [f"XDG_DATA_HOME={setup.work}"]
        argv += [binary, "run", "--adapter", "caddyfile", "--config", str(path)]
        return Launch(argv=argv, port=port, config=config)

    return launch


# name -> program, and what makes its command and configuration
PEERS: dict[str, tuple[str, Callable[[str], Callable[[Setup], Launch]]]] = {
    "nginx": ("nginx", _nginx),
    TUNED: ("nginx", partial(_nginx, is_tuned=True)),
    "h2o": ("h2o", _h2o),
    "lighttpd": ("lighttpd", _lighttpd),
    "caddy": ("caddy", _caddy),
}
ON_REQUEST = {"caddy", FLOOR_FILES, FLOOR_SANDBOX}  # measured only when named, or in `also`


def version(*argv: str) -> str:
    """The first line that looks like a version in what the command prints."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    found = re.search(r"\d+\.\d+(\.\d+)?[\w.+-]*", done.stdout + done.stderr)
    return found[0] if found else "unknown"


def peer_version(binary: str) -> str:
    """The version of a peer. Without an argument most peers would start to serve."""
    return version(binary, "version" if Path(binary).name == "caddy" else "-v")


def installed(name: str) -> str | None:
    """The path of the program. /usr/sbin is not in every user's PATH."""
    return shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The choice of servers on the command line."""

    build: Path  # has weir and bench/floor
    other: Path | None
    model: str
    weir_options: str
    only: list[str]


def weir_product(choice: Choice, *, name: str, model: str, path: Path | None = None) -> Product:
    """A build of weir with one of its models."""
    binary = (path or choice.build / "weir").resolve()
    launch = _weir(binary, model, shlex.split(choice.weir_options))
    return Product(name=name, version=version(str(binary), "--version"), launch=launch)


def products(choice: Choice, also: Collection[str] = ()) -> tuple[list[Product], list[str]]:
    """The servers to measure, and the names of those that are not there.

    Raises:
        BenchError: an unknown name, or no floor to compare with.
    """
    floor = choice.build.resolve() / "bench" / "floor"
    known = [*FLOORS, WEIR, *PEERS]
    if unknown := set(choice.only) - set(known):
        raise BenchError(f"no server called {', '.join(sorted(unknown))}; there are: {known}")
    if not floor.exists():
        raise BenchError(f"{floor} is not built; run `make build` first")
    found = [Product(name=name, version="-", launch=_floor(floor, name)) for name in FLOORS]
    missing = []
    for name, path in ((WEIR, choice.build / "weir"), (OTHER, choice.other)):
        if path is None:
            continue
        if path.exists():
            found.append(weir_product(choice, name=name, model=choice.model, path=path))
        else:
            missing.append(f"{name} ({path})")
    for name, (program, maker) in PEERS.items():
        if binary := installed(program):
            found.append(Product(name=name, version=peer_version(binary), launch=maker(binary)))
        elif name not in ON_REQUEST:
            missing.append(name)
    usual = {p.name for p in found} - (ON_REQUEST - {*also})
    chosen = {*choice.only, OTHER} if choice.only else usual
    return [p for p in found if p.name in chosen], missing


def start(product: Product, setup: Setup) -> Running:
    """Starts the server pinned to its core and returns once it answers.

    Raises:
        BenchError: it did not come up; the message has its last words.
    """
    shutil.rmtree(setup.work, ignore_errors=True)
    setup.work.mkdir(parents=True)
    launch = product.launch(setup)
    reports = launch.port is None
    read_end, write_end = os.pipe()
    log = setup.work / "output.log"
    child = process.start(
        [*launch.argv, *(["--ready-fd", str(write_end)] if reports else [])],
        cpu=setup.cpu,
        nofile=DESCRIPTORS,
        log=log,
        pass_fds=[write_end] if reports else [],
    )
    os.close(write_end)
    port = launch.port or 0
    running = Running(product=product, launch=launch, port=port, process=child, log=log)
    with open(read_end) as ready:
        try:
            if reports:
                running.port = _reported_port(ready, product.name)
            http1.wait_for_port(running.port, READY_WITHIN_S)
            running.check_alive()
        except BenchError:
            running.stop()
            running.check_alive()
            raise
        except BaseException:  # interrupted: ends the server, too
            running.stop()
            raise
    return running


def _reported_port(ready: IO[str], name: str) -> int:
    """The port in the URL that the server writes once it accepts."""
    process.wait_until_readable(ready, READY_WITHIN_S, name)
    line = ready.readline()
    found = re.search(r":(\d+)/?$", line.strip())
    if found is None:
        raise BenchError(f"{name} reported no URL but {line!r}")
    return int(found[1])
