# SPDX-License-Identifier: MIT
"""A terminal with a shell in it, held by a tmux of its own: keys go in, and the screen can be
read."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import time
from pathlib import Path

from tests.e2e.running import Process

WAIT_S = 20.0
SHELL = ("sh", "-i")


class Terminal:
    """A context manager. The shell's prompt is `$ `."""

    def __init__(
        self,
        folder: Path,
        *,
        columns: int = 80,
        rows: int = 24,
        shell: tuple[str, ...] = SHELL,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.socket = folder / "tmux"
        self.numbers = itertools.count()
        variables = {"PS1": "$ ", "LC_ALL": "C.UTF-8", "TERM": "screen"} | (environment or {})
        words = [f"{name}={value}" for name, value in variables.items()]
        size = ["-x", str(columns), "-y", str(rows)]
        # Once the terminal has ended, its last screen is to be seen.
        self.tmux("-f", "/dev/null", "new-session", "-d", *size, "env", *words, *shell)
        self.tmux("set-option", "-g", "remain-on-exit", "on")
        self.wait_for(r"^\$")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.tmux("kill-server")

    def tmux(self, *words: str) -> str:
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(self.folder)}
        command = ["tmux", "-S", str(self.socket), *words]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=WAIT_S, check=False
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def keys(self, *names: str) -> None:
        """Keys by tmux's names for them: Down, C-c, or characters."""
        self.tmux("send-keys", *names)

    def run(self, command: str) -> None:
        self.tmux("send-keys", "-l", command)
        self.keys("Enter")

    def finish(self, command: str) -> str:
        """Runs a command that ends, and returns what it has written to its standard output."""
        number = next(self.numbers)
        output, done = self.folder / f"output-{number}", self.folder / f"done-{number}"
        self.run(f"{command} > {output}; : > {done}")
        deadline = time.monotonic() + WAIT_S
        while not done.exists():
            assert time.monotonic() < deadline, self.text()
            time.sleep(0.02)
        return output.read_text()

    def text(self, *, escapes: bool = False) -> str:
        """What is on the screen; with `escapes`, also how it looks."""
        return self.tmux("capture-pane", "-p", *(["-e"] if escapes else []))

    def lines(self) -> list[str]:
        return self.text().splitlines()

    def wait_for(self, pattern: str, seconds: float = WAIT_S) -> re.Match[str]:
        """Goes on until the screen has something like that."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, text := self.text(), re.MULTILINE)):
            assert time.monotonic() < deadline, f"no {pattern} in:\n{text}"
            time.sleep(0.02)
        return found

    def wait_until_gone(self, pattern: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while re.search(pattern, text := self.text(), re.MULTILINE):
            assert time.monotonic() < deadline, text
            time.sleep(0.02)

    def resize(self, columns: int, rows: int) -> None:
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def state(self) -> tuple[bool, bool]:
        """Whether the cursor is shown, and whether it is the screen that programs draw on."""
        cursor, other = self.tmux("display-message", "-p", "#{cursor_flag} #{alternate_on}").split()
        return cursor == "1", other == "1"

    def child(self) -> Process:
        """The only process that the shell has started."""
        shell = Process.of(int(self.tmux("display-message", "-p", "#{pane_pid}")))
        assert shell
        (child,) = shell.children()
        return child
