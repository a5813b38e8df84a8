# SPDX-License-Identifier: MIT
"""The order in which servers are measured, so that the machine's mood favours none.

Rounds go A B C, C B A, A B C, ...: what drifts steadily hits all alike after every second round.
"""

import random
from collections.abc import Sequence


def rounds(subjects: Sequence[str], count: int, seed: int) -> list[list[str]]:
    """`count` rounds; the first one's order is drawn, the next is its reverse, and so on."""
    order = list(subjects)
    random.Random(seed).shuffle(order)
    return [order if number % 2 == 0 else order[::-1] for number in range(count)]
