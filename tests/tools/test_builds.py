# SPDX-License-Identifier: MIT
"""A build that some steps need only in part has the programs that they run, and no other."""

from __future__ import annotations

from builds import BUILDS, wanted

LISTED = """\
libbase.a.p/src_base_buf.c.o: c_COMPILER
libbase.a: STATIC_LINKER
weir: c_LINKER
tests/unit_base_buf_test: c_LINKER
tests/property_buf_test: c_LINKER
tests/weir-serial: c_LINKER
all: phony
"""


def test_programs_are_chosen_by_their_names() -> None:
    assert wanted(LISTED, ("weir", "tests/unit_*")) == ["weir", "tests/unit_base_buf_test"]
    assert wanted(LISTED, ("tests/none_*",)) == []


def test_a_build_in_part_has_the_server() -> None:
    for made in BUILDS.values():
        assert not made.targets or "weir" in wanted(LISTED, made.targets)
