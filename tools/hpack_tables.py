#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of the HPACK decoder and encoder from src/http2/*.def.

    tools/hpack_tables.py HUFFMAN_DEF NAMES_DEF HUFFMAN_OUTPUT NAMES_OUTPUT

The Huffman output has the code of each symbol, and the decoding table: for each value of the next
bits, the one or two symbols that those bits hold whole. The names output has a hash table without
collisions, from a name to its place in names.def. The same input always gives the same output. The
build runs this program, so it needs the system's Python and no package.
"""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

EOS = 256
EOS_BITS = 30
WINDOW_BITS = 12
SLOTS = 256
NUMBERS_IN_LINE = 16


def array(declaration: str, numbers: list[int]) -> str:
    rows = [
        ", ".join(map(str, numbers[at : at + NUMBERS_IN_LINE]))
        for at in range(0, len(numbers), NUMBERS_IN_LINE)
    ]
    return f"static const {declaration} = {{\n" + ",\n".join(rows) + "\n};\n"


def lengths(text: str) -> list[int]:
    """The bits of the code of each symbol, EOS last."""
    found: list[int] = []
    for line in re.findall(r"^LENGTHS\((.*)\)$", text, flags=re.MULTILINE):
        first, *bits = map(int, line.split(","))
        if first != len(found):
            sys.exit(f"huffman.def: LENGTHS({first}, ...) is not the next line")
        found += bits
    found.append(EOS_BITS)
    if len(found) != EOS + 1 or sum(2 ** (EOS_BITS - bits) for bits in found) != 2**EOS_BITS:
        sys.exit("huffman.def: the lengths are not those of a complete code of 257 symbols")
    return found


def codes(bits: list[int]) -> list[int]:
    """The canonical code with these lengths."""
    result = [0] * len(bits)
    code, before = 0, 0
    for symbol in sorted(range(len(bits)), key=lambda each: (bits[each], each)):
        code <<= bits[symbol] - before
        before = bits[symbol]
        result[symbol] = code
        code += 1
    return result


def windows(bits: list[int], code: list[int]) -> str:
    """The symbols of each window, as src/http2/huffman.c declares them."""
    first: list[int | None] = [None] * 2**WINDOW_BITS
    for symbol in range(EOS):
        free = WINDOW_BITS - bits[symbol]
        if free >= 0:
            start = code[symbol] << free
            first[start : start + 2**free] = [symbol] * 2**free
    table: list[str] = []
    for window, one in enumerate(first):
        if one is None:
            table.append("{ { 0, 0 }, 0, 0 }")
            continue
        rest = (window << bits[one]) % 2**WINDOW_BITS
        two = first[rest]
        if two is not None and bits[one] + bits[two] <= WINDOW_BITS:
            table.append(f"{{ {{ {one}, {two} }}, {bits[one] + bits[two]}, 2 }}")
        else:
            table.append(f"{{ {{ {one}, 0 }}, {bits[one]}, 1 }}")
    return "static const struct window windows[] = {\n" + ",\n".join(table) + "\n};\n"


def long_codes(bits: list[int], code: list[int]) -> str:
    """The codes above WINDOW_BITS by length: the first code, and the place of its symbol."""
    symbols = sorted(
        (each for each in range(EOS) if bits[each] > WINDOW_BITS),
        key=lambda each: (bits[each], each),
    )
    rows = []
    for length in sorted({bits[each] for each in symbols}):
        group = [each for each in symbols if bits[each] == length]
        rows.append(f"{{ {length}, {len(group)}, {symbols.index(group[0])}, {code[group[0]]}u }}")
    kind = "struct { unsigned char bits, count, at; unsigned first; }"
    table = f"static const {kind} long_codes[] = {{\n" + ",\n".join(rows) + "\n};\n"
    return table + array("unsigned char long_symbols[]", symbols)


def huffman(text: str) -> str:
    bits = lengths(text)
    code = codes(bits)
    return (
        f"enum {{ WINDOW_BITS = {WINDOW_BITS} }};\n"
        + windows(bits, code)
        + long_codes(bits, code)
        + array("unsigned symbol_code[256]", code[:EOS])
    )


def slots(names: list[str]) -> str:
    """A hash of the length and three bytes, with factors that give each name its own slot."""
    for length, last in itertools.product(range(1, SLOTS), repeat=2):
        places = [
            (len(name) * length + ord(name[-1]) * last + ord(name[len(name) // 2]) + ord(name[0]))
            % SLOTS
            for name in names
        ]
        if len(set(places)) == len(names):
            break
    else:
        sys.exit("names.def: no hash of this form separates the names")
    table = [0] * SLOTS
    for number, place in enumerate(places, start=1):
        table[place] = number
    return f"enum {{ SLOTS = {SLOTS}, LENGTH_FACTOR = {length}, LAST_FACTOR = {last} }};\n" + array(
        "unsigned char name_slots[SLOTS]", table
    )


def main() -> None:
    huffman_def, names_def, huffman_output, names_output = map(Path, sys.argv[1:5])
    names = re.findall(r'^NAME\(\w+, "([^"]+)", \d+\)$', names_def.read_text(), flags=re.MULTILINE)
    huffman_output.write_text(huffman(huffman_def.read_text()))
    names_output.write_text(slots(names))


if __name__ == "__main__":
    main()
