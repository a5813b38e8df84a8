# SPDX-License-Identifier: MIT
"""How tests wait: for a condition, and with a limit that only a hang reaches."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

LIMIT_S = 240


def wait_until(
    holds: Callable[[], object], what: str, *, while_runs: subprocess.Popen[str] | None = None
) -> None:
    """Polls until the condition holds; fails after LIMIT_S, or when the process has ended."""
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, f"after {LIMIT_S} s there is still no {what}"
        assert while_runs is None or while_runs.poll() is None, f"the process ended without {what}"
        time.sleep(0.02)


def processes(mark: str) -> list[int]:
    """The processes whose command line contains the mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark in path.read_text(errors="replace"):
                found.append(int(path.parent.name))
        except OSError:  # the process has ended
            continue
    return found


def pausing(program: Path, wrapper: Path, calls: int, pattern: str = "*") -> tuple[Path, Path]:
    """A wrapper that runs the program, and pauses instead at the call after so many.

    Calls are counted whose words match the shell pattern. Two files are returned. The first exists
    once the wrapper pauses. The wrapper continues when the second exists.
    """
    reached, resume = wrapper.with_suffix(".reached"), wrapper.with_suffix(".resume")
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(
        f"""#!/bin/sh
case "$*" in
{pattern})
    echo >>{wrapper}.calls
    if [ "$(wc -l <{wrapper}.calls)" -gt {calls} ]; then
        touch {reached}
        while [ ! -e {resume} ]; do sleep 0.05; done
    fi ;;
esac
exec {program} "$@"
"""
    )
    wrapper.chmod(0o755)
    return reached, resume
