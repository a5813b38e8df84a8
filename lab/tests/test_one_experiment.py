# SPDX-License-Identifier: MIT
"""An experiment has its folder for itself, and ends whole."""

import signal
import subprocess
from pathlib import Path

import pytest

from command import LAB, WEIR, LabHere
from waiting import LIMIT_S, pausing, wait_until


@pytest.mark.skipif(not WEIR.exists(), reason="weir is not built")
@pytest.mark.timeout(5 * LIMIT_S)
def test_a_second_experiment_in_a_folder_is_refused_while_the_first_one_runs(
    lab_here: LabHere, tmp_path: Path
) -> None:
    folder, build = tmp_path / "out", tmp_path / "build"
    reached, resume = pausing(WEIR, build / "weir", 0, pattern="load*http*")
    words = "compare epoll percore --rounds 3 --seconds 0.3 --close --users 2".split()
    words += ["--out", str(folder), "--build"]
    command = [str(LAB), *words, str(build)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, text=True) as running:
        try:
            wait_until(reached.exists, "run", while_runs=running)
            before = (folder / "results.jsonl").read_bytes()
            status, said = lab_here(*words, str(WEIR.parent), "--fresh")
            after = (folder / "results.jsonl").read_bytes()
        finally:
            running.terminate()
            resume.touch()
            running.wait(timeout=LIMIT_S)
    assert status == 1
    assert f"another weir-lab measures into {folder}" in said
    assert after == before


def test_a_second_signal_does_not_stop_the_end(lab_here: LabHere) -> None:
    assert lab_here("--version")[0] == 0
    handler = signal.getsignal(signal.SIGINT)
    assert callable(handler)
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGINT, None)
    handler(signal.SIGINT, None)
