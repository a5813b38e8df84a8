#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Starts the benchmark: `python3 bench/run.py --help`. Needs nothing but the standard library."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from bench.main import main

    sys.exit(main())
