# SPDX-License-Identifier: MIT
"""The options of the commands: for old versions of Typer, in the completion, and the version."""

import inspect
import shutil
import subprocess
import tomllib
import typing
from pathlib import Path
from typing import Annotated

import pytest
import typer

from weir_lab import __version__, cli
from weir_lab.commands.typed import moved, option

TOP = Path(__file__).resolve().parent.parent.parent
COMPLETION = TOP / "packaging/completion"


def test_options_move_into_the_defaults_that_an_old_typer_reads() -> None:
    seen: dict[str, object] = {}

    def command(
        size: Annotated[int, option("--size", help="A size.")] = 5,
        place: Annotated[Path | None, option(help="A place.")] = None,
        plain: bool = False,
    ) -> None:
        """Says what it does."""
        seen.update(size=size, place=place, plain=plain)

    found = moved(command)
    size, place, plain = inspect.signature(found).parameters.values()
    assert (size.default.default, size.default.help) == (5, "A size.")
    assert (place.default.default, place.default.help) == (None, "A place.")
    assert plain.default is False
    hints = typing.get_type_hints(found)
    assert (hints["size"], hints["plain"]) == (int, bool)
    assert typing.get_origin(hints["place"]) is typing.Union
    assert found.__doc__ == "Says what it does."
    found(size=7, place=Path("x"), plain=True)
    assert seen == {"size": 7, "place": Path("x"), "plain": True}


def test_an_argument_without_a_default_stays_required() -> None:
    def command(folder: Annotated[Path, typer.Argument()]) -> None:
        pass

    (folder,) = inspect.signature(moved(command)).parameters.values()
    assert folder.default.default is ...


def options() -> dict[str, list[str]]:
    """The options of each command, as the file of the completion has them."""
    lines = (COMPLETION / "weir-lab.options").read_text().splitlines()
    return {name: words.split() for name, _, words in (line.partition(":") for line in lines)}


def test_the_completion_has_every_command_and_every_long_option() -> None:
    group = typer.main.get_command(cli.app)
    commands = getattr(group, "commands")  # noqa: B009 - mypy knows the base class alone
    expected = {
        name: {
            word
            for one in command.params
            for word in (*one.opts, *one.secondary_opts)
            if word.startswith("--")
        }
        | {"--help"}
        for name, command in commands.items()
    }
    assert {name: set(words) for name, words in options().items()} == expected


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["rep"], ["report", "reproduce"]),
        (["--v"], ["--version"]),
        (["report", "--o"], ["--open", "--out"]),
        (["capacity", "--p99"], ["--p99-ms"]),
    ],
)
def test_bash_completes_commands_and_options(typed: list[str], completed: list[str]) -> None:
    text = (COMPLETION / "weir-lab.bash").read_text()
    text = text.replace("/usr/share/weir-lab/options", str(COMPLETION / "weir-lab.options"))
    words = " ".join(["weir-lab", *typed])
    script = (
        f'{text}\nCOMP_WORDS=({words}) COMP_CWORD={len(typed)}\n_weir_lab\necho "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert (sorted(done.stdout.split()), done.stderr) == (completed, "")


def test_the_version_is_that_of_the_package_and_of_the_server() -> None:
    with (TOP / "lab/pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["version"] == __version__
    assert f"version: '{__version__}'" in (TOP / "meson.build").read_text()


def test_the_version_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)  # those of the test stay
    monkeypatch.setattr("sys.argv", ["weir-lab", "--version"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    assert capsys.readouterr().out == f"weir-lab {__version__}\n"
