# SPDX-License-Identifier: MIT
"""h2load as the generator of HTTP/2: its command, and the reading of its report.

h2load names the protocol, the version of TLS, the cipher suite and the group that its connections
have agreed on. A load with others is refused, so every figure is one of HTTP/2.
"""

import re

from bench.certificate import GROUP, PROTOCOL, SUITE
from bench.process import BenchError, Done
from bench.scenarios import Scenario

AGREED = {
    "Application protocol": "h2",
    "TLS Protocol": PROTOCOL,
    "Cipher": SUITE,
    "Server Temp Key": GROUP,
}


def argv(url: str, scenario: Scenario, seconds: int) -> list[str]:
    """The command. Its windows (2^30 bytes) are larger than any answer."""
    size = [f"-c{scenario.connections}", f"-m{scenario.streams}", f"-D{seconds}"]
    return ["h2load", "-t1", *size, "--npn-list=h2", f"--groups={GROUP}", url]


def _number(pattern: str, done: Done) -> int:
    found = re.search(pattern, done.output)
    if found is None:
        said = f"{done.output[-300:]} {done.errors[-300:]}".strip()
        raise BenchError(f"h2load ended with {done.status}: {said}")
    return int(found[1])


def check(done: Done) -> None:
    """Checks the agreement that h2load reports.

    Raises:
        BenchError: the load was another protocol, or another kind of TLS.
    """
    for name, wanted in AGREED.items():
        found = re.search(rf"^{name}: (\S+)", done.output, re.MULTILINE)
        if found is None or found[1] != wanted:
            said = found[1] if found else done.output[-300:].strip() or done.errors[-300:].strip()
            raise BenchError(f"h2load reports no {name} {wanted} but: {said}")


def counts(done: Done, seconds: int) -> dict[str, int]:
    """The counts of a load. `bytes` are those of bodies; there are no percentiles.

    Raises:
        BenchError: h2load failed, or did not speak HTTP/2.
    """
    check(done)
    return {
        "requests": _number(r"(\d+) succeeded", done),
        "bytes": _number(r"\((\d+)\) data", done),
        "duration_us": seconds * 1_000_000,
        "read_errors": _number(r"(\d+) errored", done),
        "timeouts": _number(r"(\d+) timeout", done),
        "status_errors": _number(r"(\d+) 4xx", done) + _number(r"(\d+) 5xx", done),
        "p50_us": 0,
        "p99_us": 0,
    }
