# SPDX-License-Identifier: MIT
"""A disk that is full, or fails: what was there before remains, and the error is one line."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import measured
from command import LabHere
from weir_lab.experiments import experiment
from weir_lab.report.page import Fold, Headline, Report, Section, Table, write
from weir_lab.rim import files
from weir_lab.rim.errors import LabError
from weir_lab.rim.store import FILE, Store, open_store, read

MARKS = "<!-- written by weir-lab x --record -->\r\n{}\r\n<!-- end -->\r\n"


@contextmanager
def space_for(size: int) -> Iterator[None]:
    """No file can become larger than this. The error is `File too large`."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def report(answer: str) -> Report:
    """A report with a table."""
    table = Table(name="levels", title="Levels", head=["users"], rows=[[answer]])
    headline = Headline(sentence=answer)
    section = Section(title="S", headline=headline, folds=[Fold(title="All", tables=[table])])
    return Report(title="R", sections=[section], environment={})


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def new_store(folder: Path, *, fresh: bool = False) -> Store:
    return open_store(folder, {}, {}, fresh=fresh)


def test_a_report_that_finds_no_space_leaves_the_old_one_with_its_files(tmp_path: Path) -> None:
    write(report("old"), tmp_path)
    before = contents(tmp_path)
    assert before.keys() == {"report.html", "report.md", "levels.csv"}
    size = len(before["report.html"]) - 1
    with space_for(size), pytest.raises(LabError, match=r"report\.html: File too large$"):
        write(report("new"), tmp_path)
    assert contents(tmp_path) == before
    write(report("new"), tmp_path)
    assert contents(tmp_path)["levels.csv"] == b"users\nnew\n"


def test_a_report_without_space_is_one_line(lab_here: LabHere, tmp_path: Path) -> None:
    folder = measured.put(measured.lines("pool-ka"), tmp_path)
    with space_for(100):
        status, said = lab_here("report", str(folder))
    assert status == 1
    assert said.startswith(f"weir-lab: {folder}/")
    assert said.endswith(": File too large")
    assert contents(folder).keys() == {FILE}


def test_a_recorded_page_that_finds_no_space_is_as_before(tmp_path: Path) -> None:
    page, link = tmp_path / "page.md", tmp_path / "link.md"
    page.write_bytes(MARKS.format("old").encode())
    page.chmod(0o640)
    link.symlink_to(page.name)
    with space_for(80), pytest.raises(LabError, match=r"link\.md: File too large$"):
        experiment.record(report("new"), link, "x")
    assert page.read_bytes() == MARKS.format("old").encode()
    experiment.record(report("new"), link, "x")
    assert b"- new" in page.read_bytes()
    assert page.read_bytes().endswith(b"<!-- end -->\r\n")
    assert link.is_symlink()
    assert page.stat().st_mode & 0o777 == 0o640
    assert contents(tmp_path).keys() == {"page.md", "link.md"}


def test_a_page_that_is_no_text_is_not_recorded_into(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_bytes(b"\xff" + MARKS.format("old").encode())
    with pytest.raises(LabError, match=r"page\.md is not UTF-8"):
        experiment.record(report("new"), page, "x")


def test_a_file_that_cannot_be_replaced_leaves_no_part(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(LabError, match="a: Is a directory"):
        files.replace({tmp_path / "a": "text"})
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_fresh_keeps_the_earlier_results_where_it_cannot_begin(tmp_path: Path) -> None:
    new_store(tmp_path).add("a", {})
    before = contents(tmp_path)
    with space_for(10), pytest.raises(LabError, match="File too large"):
        new_store(tmp_path, fresh=True)
    assert contents(tmp_path) == before
    assert new_store(tmp_path, fresh=True).records == {}


def test_a_part_of_a_line_that_stays_on_disk_spoils_no_later_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new_store(tmp_path)
    store.add("a", {})

    def refuse(_path: Path, _length: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "truncate", refuse)
    with space_for(store.path.stat().st_size + 100), pytest.raises(LabError, match="too large"):
        store.add("b", {"text": "x" * 1000})
    assert not store.has("b")
    assert not store.path.read_bytes().endswith(b"\n")
    store.add("c", {})
    assert [record.get("key") for record in read(store.path)] == [None, "a", "c"]


def test_a_point_counts_as_measured_only_once_it_is_on_disk(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    store.add("a", {"error": "the server died"})
    with space_for(store.path.stat().st_size), pytest.raises(LabError, match="File too large"):
        store.add("a", {"text": "x" * 1000})
    assert not store.has("a")
    with space_for(store.path.stat().st_size), pytest.raises(LabError, match="File too large"):
        store.annotate("setup", "x" * 1000)
    assert "setup" not in store.head


def test_bytes_of_a_path_that_are_not_utf_8_are_kept(tmp_path: Path) -> None:
    path = os.fsdecode(b"/tmp/b\xff")
    store = new_store(tmp_path)
    store.add("a", {"path": path})
    store.add("a", {"path": path})
    assert new_store(tmp_path).records["a"]["path"] == path
    write(report(path), tmp_path)
    assert "/tmp/b\\udcff" in (tmp_path / "report.html").read_text()
