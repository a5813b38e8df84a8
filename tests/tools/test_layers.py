# SPDX-License-Identifier: MIT
"""src/LAYERS is read, and drawn."""

from __future__ import annotations

import layers
import pytest

TEXT = """\
# a comment
ground:  -              pure
left:    ground         pure
right:   ground
upper:   left right
all:     *
"""


def test_reads_the_layers_that_each_layer_uses() -> None:
    read = layers.parse(TEXT)
    assert list(read) == ["ground", "left", "right", "upper", "all"]
    assert read["upper"].uses == ("left", "right")
    assert read["ground"].uses == ()
    assert read["all"].uses == ("ground", "left", "right", "upper")


def test_reads_which_layers_are_pure() -> None:
    read = layers.parse(TEXT)
    assert [name for name, layer in read.items() if layer.pure] == ["ground", "left"]


def test_a_layer_includes_itself_and_listed_layers_but_not_what_those_use() -> None:
    read = layers.parse(TEXT)
    assert layers.may_include(read, "upper", "upper")
    assert layers.may_include(read, "upper", "left")
    assert not layers.may_include(read, "upper", "ground")
    assert not layers.may_include(read, "left", "upper")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b\nb: -\n", "line 1: a uses b, which is not above it"),
        ("a: a\n", "line 1: a uses a"),
        ("\na -\n", "line 2: expected"),
        ("a:\n", "line 1: expected"),
    ],
)
def test_refuses_malformed_lines(text: str, message: str) -> None:
    with pytest.raises(layers.LayersError, match=message):
        layers.parse(text)


def test_draws_each_layer_above_all_that_it_uses() -> None:
    drawn = layers.draw(layers.parse(TEXT))
    floors = [line.strip("| ").split() for line in drawn.splitlines() if line.startswith("|")]
    assert floors == [["all"], ["upper"], ["left", "right"], ["ground"]]
    assert "upper   may include  left right\n" in drawn
    assert "ground  may include  nothing   (pure)\n" in drawn
    assert "all     may include  everything\n" in drawn
