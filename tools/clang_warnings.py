#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Has clang read every file as gcc compiles it. A warning is an error.

The warnings of clang come from its front end. So it parses only, which costs a fifth of a build.

    tools/clang_warnings.py BUILD_DIRECTORY
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WITH_A_VALUE = ("-o", "-MQ", "-MF")
WITHOUT = ("-c", "-MD")
# gcc has no such warnings, so meson.build does not turn them off in a build with gcc.
OFF = ("-Wno-enum-enum-conversion", "-Wno-enum-float-conversion")


def parsing(command: str) -> list[str]:
    """The command that only parses the file that this command compiles."""
    words = shlex.split(command)
    words = words[1:] if Path(words[0]).name == "ccache" else words
    kept = [
        word
        for before, word in itertools.pairwise(words)
        if {before, word}.isdisjoint(WITH_A_VALUE)
    ]
    kept = [word for word in kept if word not in WITHOUT]
    return ["clang", *kept, *OFF, "-fsyntax-only"]


def main() -> int:
    directory = Path(sys.argv[1])
    entries = json.loads((directory / "compile_commands.json").read_text())
    commands = [
        parsing(entry["command"])
        for entry in entries
        if "librecorded.a.p" not in entry["output"]  # compiled again, for tests/sharing
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(lambda words: subprocess.run(words, cwd=directory).returncode, commands)
        return 1 if any(done) else 0


if __name__ == "__main__":
    sys.exit(main())
