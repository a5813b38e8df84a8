# SPDX-License-Identifier: MIT
"""The legend below the axes of a picture, for every version of Matplotlib from 3.6 on.

Matplotlib 3.6, which Debian 12 has, does not keep a legend and the axes apart.
"""

import matplotlib
from matplotlib.figure import Figure
from matplotlib.legend import Legend

KEEPS_APART = matplotlib.__version_info__ >= (3, 7)
GAP = 0.02  # part of the height between a legend and the axes


def lay_out(figure: Figure, below: float) -> None:
    """Uses the layout engine, and leaves the part `below` of the height to the legend."""
    figure.set_layout_engine("constrained", rect=(0, below, 1, 1 - below))


def _place(figure: Figure, columns: int, colour: str) -> Legend:
    return figure.legend(
        loc="outside lower center" if KEEPS_APART else "lower center",
        ncols=columns,
        fontsize=9,
        frameon=False,
        labelcolor=colour,
    )


def add(figure: Figure, columns: int, colour: str) -> float:
    """Adds the legend with as many `columns` as fit into the width. Returns the part of the height
    that `lay_out` leaves to the legend."""
    legend = _place(figure, columns, colour)
    while columns > 1 and legend.get_window_extent().width > figure.bbox.width:
        legend.remove()
        columns -= 1
        legend = _place(figure, columns, colour)
    if KEEPS_APART:
        return 0.0
    below = float(legend.get_window_extent().height / figure.bbox.height) + GAP
    lay_out(figure, below)
    return below
