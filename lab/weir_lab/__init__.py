# SPDX-License-Identifier: MIT
"""Experiments with weir: the source documents' repeated, servers compared, capacity predicted.

The centre is pure: `capacity` (models of how much a server can carry), `analysis` (what a few noisy
runs show) and `report` (plots and the page). `rim` touches the world: processes, the machine, load
generators, files. `commands` puts the two together.
"""

__version__ = "0.1.0"  # as in pyproject.toml
