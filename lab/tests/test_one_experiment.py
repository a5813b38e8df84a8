# SPDX-License-Identifier: MIT
"""An experiment has its folder for itself, and ends whole."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import LIMIT_S, pausing, wait_until
from weir_lab import cli
from weir_lab.experiments.experiment import stop_asked

TOP = Path(__file__).resolve().parent.parent.parent
WEIR = Path(os.environ.get("WEIR", TOP / "build/weir")).resolve()
LAB = Path(sys.executable).with_name("weir-lab")


@pytest.mark.skipif(not WEIR.exists(), reason="weir is not built")
@pytest.mark.timeout(5 * LIMIT_S)
def test_a_second_experiment_in_a_folder_is_refused_while_the_first_one_runs(
    tmp_path: Path,
) -> None:
    folder, build = tmp_path / "out", tmp_path / "build"
    reached, resume = pausing(WEIR, build / "weir", 0, pattern="load*http*")
    words = "compare epoll percore --rounds 3 --seconds 0.3 --close --users 2".split()
    command = [str(LAB), *words, "--out", str(folder), "--build"]
    with subprocess.Popen([*command, str(build)], stderr=subprocess.DEVNULL, text=True) as running:
        try:
            wait_until(reached.exists, "run", while_runs=running)
            before = (folder / "results.jsonl").read_bytes()
            second = subprocess.run(
                [*command, str(WEIR.parent), "--fresh"], capture_output=True, text=True, check=False
            )
            after = (folder / "results.jsonl").read_bytes()
        finally:
            running.terminate()
            resume.touch()
            running.wait(timeout=LIMIT_S)
    assert second.returncode == 1
    assert f"another weir-lab measures into {folder}" in " ".join(second.stderr.split())
    assert after == before


def test_a_second_signal_does_not_stop_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    monkeypatch.setattr(sys, "argv", ["weir-lab", "--version"])
    try:
        with pytest.raises(SystemExit):
            cli.main()
        handler = signal.getsignal(signal.SIGINT)
        assert callable(handler)
        with pytest.raises(KeyboardInterrupt):
            handler(signal.SIGINT, None)
        handler(signal.SIGINT, None)
    finally:
        stop_asked.clear()
        for number, old in before.items():
            signal.signal(number, old)
