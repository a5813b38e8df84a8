# SPDX-License-Identifier: MIT
"""Where the lab touches the world: machine, processes, load generators, files."""
