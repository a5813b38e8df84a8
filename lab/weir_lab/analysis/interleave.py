# SPDX-License-Identifier: MIT
"""The order in which servers are measured, so that drift of the machine favours none.

Rounds go A B C, C B A, A B C, and so on. A steady drift is the same for all after two rounds.
"""

import random
from collections.abc import Sequence


def rounds(subjects: Sequence[str], count: int, seed: int) -> list[list[str]]:
    """`count` rounds; the first order is drawn, each next one is the reverse."""
    order = list(subjects)
    random.Random(seed).shuffle(order)
    return [order if number % 2 == 0 else order[::-1] for number in range(count)]
