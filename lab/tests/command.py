# SPDX-License-Identifier: MIT
"""weir-lab as its users run it: where the programs are, and a call in this process."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
WEIR = Path(os.environ.get("WEIR", TOP / "build/weir")).resolve()
LAB = Path(sys.executable).with_name("weir-lab")

LabHere = Callable[..., tuple[int, str]]
