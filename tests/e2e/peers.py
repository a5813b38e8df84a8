# SPDX-License-Identifier: MIT
"""Other people's servers, where they are installed: each serves one folder and logs its answers."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

START_S = 20.0

NGINX = """
{user}
daemon off; worker_processes 2; pid {work}/pid; error_log {work}/errors;
events {{ worker_connections 512; }}
http {{
    access_log {work}/log;
    client_body_temp_path {work}/body; proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi; uwsgi_temp_path {work}/uwsgi; scgi_temp_path {work}/scgi;
    keepalive_timeout {keep_s}s; keepalive_requests {requests};
    server {{ listen 127.0.0.1:{port}; root {folder}; }}
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
    """Where it is; administrators' programs are not on everybody's path."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@dataclass
class PeerServer:
    """One that runs."""

    popen: subprocess.Popen[bytes]
    url: str
    log: Path

    def stop(self) -> list[str]:
        """Ends it; the lines of its log are the requests that it has answered."""
        self.popen.terminate()
        self.popen.wait(START_S)
        return self.log.read_text().splitlines()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert isinstance(port, int)
    return port


def wait_until_it_accepts(popen: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and popen.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.01)
    raise AssertionError(f"{popen.args!r} did not start")


@contextlib.contextmanager
def peer(
    name: str, folder: Path, work: Path, *, keep_s: int = 60, requests: int = 1_000_000
) -> Iterator[PeerServer]:
    """Runs it on a free port of this machine, with these limits of keep-alive."""
    program = program_of(name)
    assert program
    port = free_port()
    configuration = work / "conf"
    configuration.write_text(
        CONFIGURATIONS[name].format(
            user="user root;" if os.geteuid() == 0 else "",
            work=work,
            folder=folder,
            port=port,
            keep_s=keep_s,
            requests=requests,
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
        wait_until_it_accepts(popen, port)
        yield PeerServer(popen, f"http://127.0.0.1:{port}", work / "log")
    finally:
        popen.terminate()
        popen.wait(START_S)
