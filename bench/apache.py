# SPDX-License-Identifier: MIT
"""Apache's three ways to serve, set up as its guides say: one process or thread for each connection
that there may be, where the way needs one, and nothing logged.
"""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from bench import http1
from bench.servers import KEEP_ALIVE_S, Launch, Product, Setup, installed

MODULES = (Path("/usr/lib/apache2/modules"), Path("/usr/lib64/httpd/modules"))
CONNECTIONS_MAX = 1200
THREADS_PER_CHILD = 25
CHILDREN = CONNECTIONS_MAX // THREADS_PER_CHILD

# Multi-processing module -> its own directives. `event` needs no thread for an idle connection.
MPMS = {
    "prefork": f"""\
ServerLimit {CONNECTIONS_MAX}
MaxRequestWorkers {CONNECTIONS_MAX}
StartServers 10
MinSpareServers 10
MaxSpareServers {CONNECTIONS_MAX}
""",
    "worker": f"""\
ServerLimit {CHILDREN}
MaxRequestWorkers {CONNECTIONS_MAX}
ThreadsPerChild {THREADS_PER_CHILD}
MinSpareThreads {THREADS_PER_CHILD}
MaxSpareThreads {CONNECTIONS_MAX}
""",
    "event": f"""\
ServerLimit 4
MaxRequestWorkers {4 * THREADS_PER_CHILD}
ThreadsPerChild {THREADS_PER_CHILD}
AsyncRequestWorkerFactor 64
""",
}


def _launch(binary: str, modules: Path, mpm: str) -> Callable[[Setup], Launch]:
    def launch(setup: Setup) -> Launch:
        port = http1.free_port()
        user = "User nobody\nGroup nogroup\n" if os.geteuid() == 0 else ""
        config = f"""\
ServerRoot {setup.work}
ServerName localhost
LoadModule mpm_{mpm}_module {modules}/mod_mpm_{mpm}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
{user}PidFile {setup.work}/apache.pid
DefaultRuntimeDir {setup.work}
ErrorLog {setup.work}/error.log
LogLevel crit
Listen 127.0.0.1:{port}
ListenBacklog 4096
DocumentRoot {setup.root}
<Directory />
    AllowOverride None
    Options FollowSymLinks
    Require all granted
</Directory>
KeepAlive On
KeepAliveTimeout {KEEP_ALIVE_S}
MaxKeepAliveRequests 0
EnableSendfile On
{MPMS[mpm]}MaxConnectionsPerChild 0
"""
        path = setup.work / "apache.conf"
        path.write_text(config)
        return Launch(argv=[binary, "-D", "FOREGROUND", "-f", str(path)], port=port, config=config)

    return launch


def products() -> list[Product]:
    """The modules of Apache that are installed."""
    binary = installed("apache2") or installed("httpd")
    modules = next((m for m in MODULES if m.is_dir()), None)
    if binary is None or modules is None:
        return []
    said = subprocess.run([binary, "-v"], capture_output=True, text=True, check=False).stdout
    version = found[1] if (found := re.search(r"Apache/(\S+)", said)) else "unknown"
    return [
        Product(name=f"apache-{mpm}", version=version, launch=_launch(binary, modules, mpm))
        for mpm in MPMS
        if (modules / f"mod_mpm_{mpm}.so").is_file()
    ]
