# SPDX-License-Identifier: MIT
"""Completion in the shells themselves: each completes a line as a person types it."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command import run
from tests.e2e.running import TOP, WEIR
from tests.waiting import LIMIT_S

COMPLETION = TOP / "packaging/completion"
LAB_OPTIONS = COMPLETION / "weir-lab.options"
TYPING = TOP / "tests/e2e/complete.zsh"
Complete = Callable[[str], set[str]]


def functions(place: Path, shell: str) -> list[Path]:
    """The completion functions of both programs, beside the place. zsh finds them by their name."""
    folder = place.parent / "functions"
    folder.mkdir(exist_ok=True)
    copies = []
    for name in ("weir", "weir-lab"):
        copy = folder / f"_{name}"
        text = (COMPLETION / f"{name}.{shell}").read_text()
        copy.write_text(text.replace("/usr/share/weir-lab/options", str(LAB_OPTIONS)))
        copies.append(copy)
    return copies


def bash(line: str, place: Path) -> set[str]:
    words = line.replace("=", " = ").split(" ")  # bash takes the sign for a word
    if line.endswith("="):
        words.pop()
    typed = " ".join(words) + ("" if words[-1] else " ''")
    script = "\n".join(
        [
            *(f"source {file}" for file in functions(place, "bash")),
            f"COMP_WORDS=({typed}) COMP_CWORD={len(words) - 1}",
            f"_{words[0].replace('-', '_')} 2> /dev/null",  # compopt works at a prompt only
            'printf "%s\\n" "${COMPREPLY[@]}"',
        ]
    )
    return set(run(["env", "-C", str(place), "bash", "-c", script]).split())


def fish(line: str, place: Path) -> set[str]:
    sources = "; ".join(f"source {file}" for file in functions(place, "fish"))
    words = ["fish", "--no-config", "-c", f"{sources}; cd {place}; complete -C '{line}'"]
    printed = run(words, HOME=str(place.parent))
    return {offered.partition("\t")[0] for offered in printed.splitlines()}


def until_it_says(terminal: int, words: bytes) -> None:
    """Reads what a shell prints until it says the words."""
    printed = b""
    while words not in printed:
        ready, _, _ = select.select([terminal], [], [], LIMIT_S)
        assert ready, f"zsh does not say {words!r}; it printed {printed!r}"
        printed += os.read(terminal, 4096)


def zsh(line: str, place: Path) -> set[str]:
    """The shell has a terminal, but no control over jobs: it need not be in the foreground."""
    folder = functions(place, "zsh")[0].parent
    offered = place.parent / "offered"
    offered.write_text("")
    shutil.copy(TYPING, place.parent / ".zshrc")
    own = {"FUNCTIONS": str(folder), "OFFERED": str(offered), "ZDOTDIR": str(place.parent)}
    environment = os.environ | own | {"HOME": str(place.parent), "TERM": "dumb"}
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["zsh", "-d", "-i", "+m"],
        cwd=place,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as shell:
        try:
            os.close(theirs)
            until_it_says(ours, b"the editor reads")
            os.write(ours, f"{line}\t".encode())
            until_it_says(ours, b"the line is completed")
        finally:
            shell.kill()
            os.close(ours)
    return set(offered.read_text().split("\n")) - {""}


SHELLS = (bash, fish, zsh)


@pytest.fixture(params=SHELLS, ids=lambda shell: str(shell.__name__))
def complete(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Complete:
    """Completes a line in one of the shells, in a folder with one file."""
    shell = request.param
    if not shutil.which(shell.__name__):
        pytest.skip(f"{shell.__name__} is not installed")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "weir").symlink_to(WEIR)
    place = tmp_path / "place"
    place.mkdir()
    (place / "own.conf").touch()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return lambda line: set(shell(line, place))


def commands() -> set[str]:
    return set(re.findall(r"(?m)^  weir ([a-z]+) ", run([str(WEIR), "help"])))


def options(command: str) -> set[str]:
    return set(re.findall(r"(?m)^  (?:-., )?(--[a-z0-9-]+)", run([str(WEIR), "help", command])))


def test_the_first_word_is_each_command(complete: Complete) -> None:
    offered = complete("weir ")
    assert commands() <= offered
    assert offered - commands() <= {"own.conf"}


def test_help_is_followed_by_a_command(complete: Complete) -> None:
    assert complete("weir help ") == commands()


@pytest.mark.parametrize("command", ["serve", "check", "stats", "trace", "load"])
def test_a_dash_offers_each_option_of_the_command(complete: Complete, command: str) -> None:
    assert complete(f"weir {command} --") == options(command)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("weir sta", {"stats"}),
        ("weir mod", {"models"}),
        ("weir stats --pro", {"--prometheus"}),
        ("weir --stats-sl", {"--stats-slow"}),
        ("weir . --log-sam", {"--log-sample"}),
        ("weir serve --model per", {"percore"}),
        ("weir . --tls-policy ", {"intermediate", "modern"}),
        ("weir check --cache-policy si", {"sieve"}),
        ("weir --listing o", {"on", "off"}),
        ("weir serve --model=perc", {"percore"}),
        ("weir . --tls-policy=", {"intermediate", "modern"}),
        ("weir load --tls ", {"resume", "full"}),
    ],
)
def test_what_is_typed_is_completed(complete: Complete, typed: str, offered: set[str]) -> None:
    before = typed.partition("=")[0] + "="  # fish offers the whole word
    given = {each.removeprefix(before.rpartition(" ")[2]) for each in complete(typed)}
    assert given - {"own.conf"} == offered


def test_the_models_are_offered_for_the_option(complete: Complete) -> None:
    models = set(re.findall(r"(?m)^(\w+) +\S.* Use: ", run([str(WEIR), "models"])))
    assert len(models) >= 7
    assert models | {"auto"} <= complete("weir serve --model ")


@pytest.mark.parametrize("line", ["weir serve -c ow", "weir check --config ow"])
def test_a_file_is_offered_where_one_is_expected(complete: Complete, line: str) -> None:
    # In bash the prompt itself offers files where the function offers nothing.
    assert complete(line) - {""} in ({"own.conf"}, set())


def lab_commands() -> dict[str, set[str]]:
    """The commands of weir-lab with their options, from the file that the completion reads."""
    lines = LAB_OPTIONS.read_text().splitlines()
    return {line.partition(":")[0]: set(line.partition(":")[2].split()) for line in lines}


def test_the_lab_has_its_commands_and_their_options(complete: Complete) -> None:
    expected = lab_commands()
    assert set(expected) <= complete("weir-lab ")
    assert complete("weir-lab compare --") == expected["compare"]
