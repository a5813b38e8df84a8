# SPDX-License-Identifier: MIT
"""The slow disk of the tests holds what a disk is asked for, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.slowdisk import SlowDisk, SlowDiskError
from tests.waiting import wait_until

CONTENT = bytes(range(256)) * 4096


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SlowDisk]:
    (source := tmp_path / "source").mkdir()
    (source / "folder").mkdir()
    (source / "folder/file").write_bytes(CONTENT)
    (source / "other").write_bytes(CONTENT)
    (mountpoint := tmp_path / "mounted").mkdir()
    try:
        mounted = SlowDisk.mount(source, mountpoint)
    except SlowDiskError as reason:
        pytest.skip(str(reason))
    yield mounted
    mounted.end()


def start(disk: SlowDisk, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*disk.inside, *words], stdout=subprocess.PIPE)


def output(disk: SlowDisk, *words: str) -> bytes:
    return start(disk, *words).communicate()[0]


def test_shows_the_folder_and_its_files(disk: SlowDisk) -> None:
    assert output(disk, "ls", str(disk.root)).split() == [b"folder", b"other"]
    assert output(disk, "cat", str(disk.root / "folder/file")) == CONTENT


def test_a_name_waits_until_the_disk_is_released(disk: SlowDisk) -> None:
    disk.hold()
    reader = start(disk, "cat", str(disk.root / "folder/file"))
    disk.wait_held("LOOKUP", "folder")
    assert reader.poll() is None
    disk.release()
    assert reader.communicate()[0] == CONTENT


def test_a_page_waits_when_it_is_not_in_memory(disk: SlowDisk) -> None:
    path = str(disk.root / "other")
    assert output(disk, "cat", path) == CONTENT
    disk.hold()
    assert output(disk, "cat", path) == CONTENT
    disk.release()
    disk.forget("other")
    disk.hold()
    reader = start(disk, "cat", path)
    disk.wait_held("READ", "other")
    assert reader.poll() is None
    disk.release()
    assert reader.communicate()[0] == CONTENT


def test_a_process_that_waits_can_be_killed(disk: SlowDisk) -> None:
    disk.hold()
    reader = start(disk, "cat", str(disk.root / "other"))
    disk.wait_held("LOOKUP", "other")
    reader.kill()
    reader.communicate()
    assert reader.returncode == -9


def test_the_disk_works_on_when_a_process_is_killed_as_it_asks(disk: SlowDisk) -> None:
    """The kernel takes the request back. Before that, `poll` may have told the disk of it."""
    script = (
        "import itertools, os, sys\n"
        "print('asks', flush=True)\n"
        "for number in itertools.count():\n"
        "    os.path.exists(f'{sys.argv[1]}/{os.getpid()}-{number}')\n"
    )
    for _ in range(10):
        asking = [start(disk, sys.executable, "-c", script, str(disk.root)) for _ in range(4)]
        for each in asking:
            with each:
                assert each.stdout
                each.stdout.readline()
                each.kill()
        disk.delay(0)  # it obeys


def test_a_process_that_waits_for_a_disk_that_hangs_cannot_be_killed(disk: SlowDisk) -> None:
    disk.hang()
    reader = start(disk, "cat", str(disk.root / "other"))
    disk.wait_held("LOOKUP", "other")
    reader.kill()
    stat = Path(f"/proc/{reader.pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(") ")[2][0] == "D", stat.read_text)
    assert reader.poll() is None
    disk.release()
    reader.communicate()
    assert reader.returncode == -9


def test_the_end_of_the_disk_ends_what_waits(disk: SlowDisk) -> None:
    disk.hold()
    reader = start(disk, "cat", str(disk.root / "other"))
    disk.wait_held("LOOKUP", "other")
    disk.end()
    reader.communicate()
    assert reader.returncode == 1
