# SPDX-License-Identifier: MIT
"""Other web servers, where they are installed. Each serves one folder and logs its answers."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.certificates import Pair
from tests.e2e.ports import reserved_port
from tests.waiting import LIMIT_S, wait_until

NGINX = """
{user}
daemon off; worker_processes 2; pid {work}/pid; error_log {work}/errors;
events {{ worker_connections 512; }}
http {{
    access_log {work}/log;
    client_body_temp_path {work}/body; proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi; uwsgi_temp_path {work}/uwsgi; scgi_temp_path {work}/scgi;
    keepalive_timeout {keep_s}s; keepalive_requests {requests};
    server {{ listen 127.0.0.1:{port}{manner}; root {folder}; {directives} }}
}}
"""

LIGHTTPD = """
server.document-root = "{folder}"
server.bind = "127.0.0.1"
server.port = {port}
server.errorlog = "{work}/errors"
server.max-keep-alive-idle = {keep_s}
server.max-keep-alive-requests = {requests}
server.modules = ("mod_accesslog")
accesslog.filename = "{work}/log"
"""

CONFIGURATIONS = {"nginx": NGINX, "lighttpd": LIGHTTPD}


def program_of(name: str) -> str | None:
    """Where the program is. Users other than root may lack the sbin folders in PATH."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@dataclass
class PeerServer:
    """A running server."""

    popen: subprocess.Popen[bytes]
    url: str
    log: Path

    def stop(self) -> list[str]:
        """Ends the server; returns the lines of its log, one for each request that it answered."""
        self.popen.terminate()
        self.popen.wait(LIMIT_S)
        return self.log.read_text().splitlines()


def accepts(popen: subprocess.Popen[bytes], port: int) -> bool:
    """Whether the server accepts connections by now."""
    assert popen.poll() is None, f"{popen.args!r} ended with {popen.returncode}"
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@contextlib.contextmanager
def peer(
    name: str,
    folder: Path,
    work: Path,
    *,
    keep_s: int = 60,
    requests: int = 1_000_000,
    identity: Pair | None = None,
    directives: str = "",
    http2: bool = False,
) -> Iterator[PeerServer]:
    """Runs the server on a free port of this machine, with these limits of keep-alive.

    nginx alone takes an identity, with which it speaks TLS, further directives, and HTTP/2. It
    agrees on HTTP/2 by ALPN, or without an identity by prior knowledge.
    """
    if identity:
        directives += f"ssl_certificate {identity.certificate};"
        directives += f"ssl_certificate_key {identity.key};"
    with reserved_port() as port:
        yield from run(
            *(name, port, folder, work, directives),
            keep_s=keep_s,
            requests=requests,
            tls=identity is not None,
            http2=http2,
        )


def run(
    name: str,
    port: int,
    folder: Path,
    work: Path,
    directives: str,
    *,
    keep_s: int,
    requests: int,
    tls: bool,
    http2: bool,
) -> Iterator[PeerServer]:
    program = program_of(name)
    assert program
    configuration = work / "conf"
    configuration.write_text(
        CONFIGURATIONS[name].format(
            user="user root;" if os.geteuid() == 0 else "",
            work=work,
            folder=folder,
            port=port,
            keep_s=keep_s,
            requests=requests,
            manner=(" ssl" if tls else "") + (" http2" if http2 else ""),
            directives=directives,
        )
    )
    words = {"nginx": ["-p", str(work), "-c"], "lighttpd": ["-D", "-f"]}[name]
    popen = subprocess.Popen(
        [program, *words, str(configuration)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: accepts(popen, port), f"{name} accepts connections")
        scheme = "https" if tls else "http"
        yield PeerServer(popen, f"{scheme}://127.0.0.1:{port}", work / "log")
    finally:
        popen.terminate()
        popen.wait(LIMIT_S)
