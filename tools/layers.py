# SPDX-License-Identifier: MIT
"""Reads src/LAYERS, which says which layer may include which, and draws it.

Meson links by the same file, tidy.py checks includes by it, and ARCHITECTURE.md
shows the drawing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """One folder of src/."""

    name: str
    uses: tuple[str, ...]
    pure: bool = False
    uses_all: bool = False


class LayersError(Exception):
    """src/LAYERS is malformed."""


def parse(text: str) -> dict[str, Layer]:
    """Reads the text of src/LAYERS. Its order, lowest layer first, is kept."""
    layers: dict[str, Layer] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, rest = line.partition(":")
        words = rest.split()
        if not colon or not words:
            raise LayersError(f"line {number}: expected `name: layer...`, `name: -` or `name: *`")
        uses_all = "*" in words
        uses = tuple(layers) if uses_all else tuple(w for w in words if w not in ("-", "pure"))
        for use in uses:
            if use not in layers:
                raise LayersError(f"line {number}: {name} uses {use}, which is not above it")
        layers[name] = Layer(name, uses, "pure" in words, uses_all)
    return layers


def may_include(layers: dict[str, Layer], layer: str, used: str) -> bool:
    """Whether a file of `layer` may include a header of `used`."""
    return layer == used or used in layers[layer].uses


def height(layers: dict[str, Layer], name: str) -> int:
    """How many floors are below a layer."""
    return max((1 + height(layers, use) for use in layers[name].uses), default=0)


def draw(layers: dict[str, Layer]) -> str:
    """The layers as floors, the highest first, and the layers that each may include."""
    floors: dict[int, list[Layer]] = {}
    for layer in layers.values():
        floors.setdefault(height(layers, layer.name), []).append(layer)
    rows = ["   ".join(layer.name for layer in floors[floor]) for floor in sorted(floors)]
    width = max(map(len, rows)) + 8
    edge = "+" + "-" * width + "+"
    lines = [edge]
    for names in reversed(rows):
        lines += ["|" + names.center(width) + "|", edge]
    lines.append("")
    longest = max(map(len, layers))
    for layer in reversed(layers.values()):
        uses = "everything" if layer.uses_all else " ".join(layer.uses) or "nothing"
        pure = "   (pure)" if layer.pure else ""
        lines.append(f"{layer.name:<{longest}}  may include  {uses}{pure}")
    return "\n".join(lines) + "\n"
