# SPDX-License-Identifier: MIT
"""Runs on the host of a Dask worker: finds weir, starts it, ends it, reads CPU time.

fleet.py sends this module to the host, which therefore needs Dask and weir but no lab. The module
uses the standard library and bench/process.py, which is sent as well, and returns plain types. It
runs in the Dask worker's event loop and does not block it.
"""

import asyncio
import contextlib
import os
import platform
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from bench import process

EXAMINE_S = 10.0
GRACE_S = 2.0  # between SIGTERM and SIGKILL to a generator

Worker = Any  # Dask passes its worker; state between calls is kept there


def examine(weir: str) -> dict[str, Any]:
    """Facts of this host and its weir; `why` is the reason why weir cannot be used."""
    found = shutil.which(weir)
    facts = {
        "hostname": socket.gethostname(),
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "kernel": platform.release(),
        "cpus": len(os.sched_getaffinity(0)),
        "weir": found or weir,
        "version": "",
        "why": "",
    }
    if found is None:
        return facts | {"why": f"has no {weir}"}
    try:
        done = subprocess.run(
            [found, "--version"], capture_output=True, text=True, check=False, timeout=EXAMINE_S
        )
    except OSError as error:
        return facts | {"why": f"cannot run {found}: {error.strerror}"}
    except subprocess.TimeoutExpired as error:
        return facts | {"why": f"cannot run {found}: {error}"}
    said = done.stdout.splitlines()
    if done.returncode != 0 or not said or not said[0].startswith("weir "):
        return facts | {"why": f"has something else than weir at {found}"}
    return facts | {"version": said[0]}


def ignore_terminal() -> None:
    """Ignores SIGINT: Ctrl-C reaches all processes of a terminal, and the lab ends this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _runs(worker: Worker) -> dict[str, Any]:
    """Run -> its process; None: the run was stopped, perhaps before its process started."""
    kept: dict[str, Any] = worker.__dict__
    found: dict[str, Any] = kept.setdefault("weir_runs", {})
    return found


def _kill(started: asyncio.subprocess.Process) -> None:
    """Kills a generator and its children; the generator leads a session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)


async def generate(
    run: str,
    argv: list[str],
    within_s: float | None,
    dask_worker: Worker = None,
) -> dict[str, Any]:
    """Runs a generator to its end; returns `status`, `out` and `err`, or why it was `refused`."""
    runs = _runs(dask_worker)
    if run in runs:
        return {"refused": "was stopped"}
    if any(process is not None for process in runs.values()):
        return {"refused": "generates load for another run already"}
    try:
        started = await asyncio.create_subprocess_exec(
            *argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=process.ending_with_parent(signal.SIGKILL),
        )
    except OSError as error:
        return {"refused": f"cannot start {argv[0]}: {error.strerror}"}
    if run in runs:  # stopped while it was starting
        _kill(started)
    runs[run] = started
    try:
        out, err = await asyncio.wait_for(started.communicate(), within_s)
    except TimeoutError:
        return {"refused": f"had to end a generator that did not end within {within_s:.0f} s"}
    finally:
        if started.returncode is None:
            _kill(started)
            await started.wait()
        runs.pop(run, None)
    return {
        "status": started.returncode,
        "out": out.decode(errors="replace"),
        "err": err.decode(errors="replace"),
    }


async def stop(run: str, dask_worker: Worker = None) -> None:
    """Ends the generator of a run, and refuses a later start for the same run."""
    runs = _runs(dask_worker)
    started = runs.get(run)
    runs.setdefault(run, None)
    if started is None:
        return
    with contextlib.suppress(ProcessLookupError):
        started.terminate()
    try:
        await asyncio.wait_for(started.wait(), GRACE_S)
    except TimeoutError:
        _kill(started)


async def used(pid: int, at_ns: int) -> dict[str, Any]:
    """CPU and memory of a process tree at a time of this host's clock; now if past."""
    await asyncio.sleep(max(0.0, (at_ns - time.time_ns()) / 1e9))
    if not Path(f"/proc/{pid}").exists():
        return {"why": f"has no process {pid}"}
    return {
        "cpu_ns": process.cpu_ns(pid),
        "memory_kib": process.memory_kib(pid),
        "cpus": len(os.sched_getaffinity(pid)),
    }
