# SPDX-License-Identifier: MIT
"""A terminal with a shell in it, which a tmux of its own holds. A test sends keys and reads the
screen."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from pathlib import Path

from tests.e2e.running import Process
from tests.waiting import LIMIT_S, wait_until

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
        # The last screen stays readable after the shell has ended.
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
            command, capture_output=True, text=True, env=environment, timeout=LIMIT_S, check=False
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
        """Runs a command until it ends; returns its standard output."""
        number = next(self.numbers)
        output, done = self.folder / f"output-{number}", self.folder / f"done-{number}"
        self.run(f"{command} > {output}; : > {done}")
        wait_until(done.exists, self.text)
        return output.read_text()

    def text(self, *, escapes: bool = False) -> str:
        """The text on the screen; with `escapes`, also its colours."""
        return self.tmux("capture-pane", "-p", *(["-e"] if escapes else []))

    def lines(self) -> list[str]:
        return self.text().splitlines()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Waits until the screen matches the pattern; returns the match."""
        found = wait_until(
            lambda: re.search(pattern, self.text(), re.MULTILINE),
            lambda: f"{pattern} on the screen:\n{self.text()}",
        )
        assert found
        return found

    def wait_until_gone(self, pattern: str) -> None:
        wait_until(lambda: not re.search(pattern, self.text(), re.MULTILINE), self.text)

    def resize(self, columns: int, rows: int) -> None:
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def state(self) -> tuple[bool, bool]:
        """Whether the cursor is visible, and whether the alternate screen is shown."""
        cursor, other = self.tmux("display-message", "-p", "#{cursor_flag} #{alternate_on}").split()
        return cursor == "1", other == "1"

    def child(self) -> Process:
        """The only process that runs under the shell."""
        shell = Process.of(int(self.tmux("display-message", "-p", "#{pane_pid}")))
        assert shell
        (child,) = shell.children()
        return child
