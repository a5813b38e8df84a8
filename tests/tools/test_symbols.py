# SPDX-License-Identifier: MIT
"""The symbols of an object are checked by the rules of its layer."""

from __future__ import annotations

import layers
import symbols

LAYERS = layers.parse("base: - pure\nhttp: base pure\nos: base\n")


def object_of(source: str, defines: str = "", needs: str = "") -> symbols.Object:
    return symbols.Object(source, frozenset(defines.split()), frozenset(needs.split()))


def test_reads_the_output_of_nm() -> None:
    text = "num_parse T 0 1f\nnum_table R 10 4\nmemcpy U         \nmaybe w         \n"
    read = symbols.parse_nm("src/base/num.c", text)
    assert read == object_of("src/base/num.c", "num_parse num_table", "memcpy maybe")
    assert read.layer == "base"


def test_reads_the_list_of_pure_symbols_without_its_comments() -> None:
    assert symbols.read_pure_symbols("# why\nmemcpy\n\nabort # the end\n") == {"memcpy", "abort"}


def test_a_pure_layer_needs_only_pure_layers_and_the_list() -> None:
    objects = [
        object_of("src/base/num.c", "num_parse", "memcpy"),
        object_of("src/http/date.c", "http_date", "num_parse memcpy time"),
        object_of("src/os/clock.c", "os_clock", "time num_parse"),
    ]
    assert list(symbols.impurities(objects, LAYERS, {"memcpy"})) == [
        "src/http/date.c: http/ is pure and must not use time"
    ]


def test_a_pure_layer_uses_no_layer_that_is_not_pure() -> None:
    objects = [
        object_of("src/http/date.c", "http_date", "os_clock"),
        object_of("src/os/clock.c", "os_clock"),
    ]
    assert len(list(symbols.impurities(objects, LAYERS, set()))) == 1


def test_exported_names_begin_with_their_layer_and_in_base_with_their_file() -> None:
    objects = [
        object_of("src/base/num.c", "num_parse base_parse"),
        object_of("src/os/clock.c", "os_clock clock_now"),
        object_of("src/program/main.c", "main program_run"),
        object_of("tests/unit/base/num_test.c", "anything"),
    ]
    assert list(symbols.misnamed(objects)) == [
        "src/base/num.c: base_parse should begin with num_",
        "src/os/clock.c: clock_now should begin with os_",
    ]


def test_exported_names_have_a_meaning() -> None:
    objects = [object_of("src/os/file.c", "os_file_helper")]
    assert list(symbols.misnamed(objects)) == [
        "src/os/file.c: os_file_helper: a name that says nothing: helper"
    ]


def test_another_file_uses_each_exported_symbol() -> None:
    objects = [
        object_of("src/os/file.c", "os_file_open os_file_idle"),
        object_of("src/program/main.c", "main", "os_file_open"),
        object_of("tests/unit/os/file_test.c", "main idle_in_a_test"),
    ]
    assert list(symbols.unused(objects)) == [
        "src/os/file.c: os_file_idle is used in no other file: make it static or delete it"
    ]
