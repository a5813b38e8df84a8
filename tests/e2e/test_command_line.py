# SPDX-License-Identifier: MIT
"""The command line: commands, options and their errors. Every text about the settings agrees with
settings.def."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.e2e.running import TOP, WEIR, models, start
from tests.waiting import LIMIT_S


def weir(*arguments: str, cwd: Path = TOP) -> subprocess.CompletedProcess[str]:
    """Runs weir, which must end by itself."""
    return subprocess.run(
        [WEIR, *arguments],
        cwd=cwd,
        env={"PATH": os.defpath},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@dataclass(frozen=True)
class Setting:
    """A line of settings.def."""

    section: str
    name: str
    default: str

    @property
    def has_flag(self) -> bool:
        return self.section != "PATH" and self.name not in ("root", "host")


@cache
def settings() -> tuple[Setting, ...]:
    text = (TOP / "src/config/settings.def").read_text()
    pattern = r'^(SERVER|SITE|PATH)_SETTING\(\w+, "([^"]+)", \w+, \w+, "([^"]+)",'
    found = tuple(Setting(*match.groups()) for match in re.finditer(pattern, text, re.MULTILINE))
    entries = re.findall(r'^\w+_SETTING\(\w+, "', text, re.MULTILINE)
    assert len(found) == len(entries) > 20
    return found


def test_help_and_version_exit_with_0_and_print_no_error() -> None:
    for arguments in (
        ["--help"],
        ["-h"],
        ["help"],
        ["help", "serve"],
        ["help", "help"],
        ["serve", "--help"],
        ["check", "-h"],
        ["models", "--help"],
        ["reload", "--help"],
        ["help", "stop"],
        ["--listen", "nonsense", "--help"],
    ):
        done = weir(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), arguments
        assert "sage:" in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 80


COMMANDS = "serve check reload stop stats top password trace load models help".split()


def test_help_names_every_command_and_each_command_has_help() -> None:
    overview = weir("help").stdout
    listed = re.findall(r"^  weir (\w+) ?(?:\[.*\]|\.\.\.|[A-Z].*)?  ", overview, re.MULTILINE)
    assert [name for name in listed if name != "DIR"] == COMMANDS
    for command in COMMANDS:
        assert f"  weir {command}" in overview
        done = weir("help", command)
        assert done.returncode == 0
    assert weir().returncode == 2
    assert weir().stderr == overview


def test_the_manual_names_and_describes_every_command() -> None:
    text = (TOP / "docs/man/weir.1").read_text()
    synopsis = text.partition(".Sh SYNOPSIS")[2].partition(".Sh")[0]
    assert set(re.findall(r"^\.Nm\n\.Cm (\w+)$", synopsis, re.MULTILINE)) == set(COMMANDS)
    described = re.findall(r"^\.It Cm (\w+)$", text, re.MULTILINE)
    assert set(COMMANDS) <= set(described)
    for page in (TOP / "docs/man").glob("weir-*.1"):
        name = page.stem
        assert f".Xr {name} 1" in text.partition(".Sh SEE ALSO")[2], name
        assert f"{name}(1)" in weir("help").stdout


def test_the_manuals_have_no_markup_that_a_reader_sees_differently() -> None:
    for page in (TOP / "docs/man").iterdir():
        for line in page.read_text().splitlines():
            # Fl covers no word behind a bar, a lone period loses its space, and Ql covers a Ql.
            assert not re.search(r"Fl Fl [\w-]+ \| (?!Fl )", line), line
            assert not re.match(r"\.Dl .* \. ", line), line
            assert not re.search(r" Ql \S+ , Ql ", line), line


def test_models_are_listed_one_per_line() -> None:
    done = weir("models")
    assert done.returncode == 0
    table = (TOP / "src/model/models.def").read_text()
    assert list(models()) == re.findall(r"^MODEL\((\w+),", table, re.MULTILINE)
    listed, machine = done.stdout.split("\n\n")
    assert all(" Use: " in line for line in listed.splitlines())
    assert machine.startswith("Sandbox on this machine: no_new_privs")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serv"], "`serv` is neither a command nor a folder; did you mean `serve`?"),
        (["chekc"], "did you mean `check`?"),
        (["run", "."], "did you mean `serve`?"),
        (["configtest"], "did you mean `check`?"),
        (["restart"], "did you mean `reload`?"),
        (["version"], "did you mean `--version`?"),
        (["-t"], "there is no -t; `weir check` tests a configuration"),
        (["-s", "reload"], "`weir reload` and `weir stop` reach a running server"),
        ([".", "-listen", "0"], "an option has two dashes; write --listen"),
        ([".", "--no-http2"], "there is no --no-http2; write --http2 off"),
        (["frobnicate"], "neither a command nor a folder; see `weir help`"),
        (["help", "modles"], "did you mean `models`?"),
        (["password", "a:b"], "a user name has at most 255 bytes, and no colon or #"),
        (["help", "serve", "extra"], "`extra` is one argument too many; see `weir help serve`"),
        (["help", "load", "extra"], "`extra` is one argument too many; see `weir help load`"),
        (["serve"], "this folder has no weir.conf; give a folder (weir serve DIR) or"),
        (["serve", "--listen", "0"], "nothing to serve"),
        (["."] * 2, "`.` and `.` are two arguments"),
        ([".", "--lisen", "80"], "unknown option --lisen; did you mean --listen?"),
        ([".", "--cache_size=1M"], "unknown option --cache_size; did you mean --cache-size?"),
        ([".", "-x"], "unknown option -x; `weir help serve` lists them"),
        ([".", "--port", "80"], "there is no --port; write --listen PORT"),
        ([".", "-p", "80"], "there is no -p; write --listen PORT"),
        (["check", ".", "--port", "80"], "there is no --port; write --listen PORT"),
        (["trace", "/", ".", "--bind=x"], "there is no --bind; write --listen ADDRESS:PORT"),
        ([".", "--gzip"], "there is no --gzip; write --compress on|off"),
        ([".", "--root", "."], "there is no --root; the folder goes without an option: weir DIR"),
        ([".", "--host", "a"], "write `host = HOST` under [site NAME]"),
        ([".", "--sendfile"], "weir chooses the fastest way by itself; remove it"),
        ([".", "--listen"], "--listen needs a value: --listen ADDRESS"),
        ([".", "--quiet=yes"], "--quiet takes no value"),
        ([".", "--listen", "127.0.0.1"], "`127.0.0.1` has no port; write 127.0.0.1:8080"),
        ([".", "--listen=99999"], "--listen: port 99999 is too large"),
        ([".", "--model", "epol"], "--model: `epol` is not auto, "),
        ([".", "--cache-size", "64Q"], "--cache-size: `64Q` is not a size"),
        ([".", "--header", "Content-Length: 5"], "weir itself sends Content-Length"),
        ([".", "--header", "X: a\r\nY: b"], "control byte"),
        ([".", "--spa", "../secret"], "is not a file below the root"),
        ([".", "--ready-fd", "x"], "`x` is not a number from 0 to"),
        ([".", "--ready-fd", "999"], "descriptor 999 is not open"),
        (["./nowhere"], "./nowhere: cannot be served: there is no such folder"),
        (["README.md"], "README.md: is a file; name its folder"),
        (["models", "--listen", "0"], "`weir models` takes no --listen"),
        (["models", "now"], "takes no argument"),
        (["reload", "--now"], "unknown option --now; `weir help reload` lists them"),
        (["reload", "--listen", "0"], "`weir reload` takes no --listen"),
        (["stats", "--steps", "1"], "unknown option --steps"),
        (["stats", "--interval", "1ms"], "is not a time from 100 ms to 3600 s"),
        (["stats", "--diff", "--json"], "--diff prints a table of changes"),
        (["stats", "--watch", "--prometheus"], "--watch prints tables"),
        (["stats", "--list", "1"], "--list prints a table of servers"),
        (["stats", "--ignore-warnings"], "--ignore-warnings belongs to --check"),
        (["stats", "--json", "--explain"], "--explain prints text"),
        (["stats", "--interval", "5s"], "--interval belongs to --diff and --watch"),
        (["top", "--interval"], "--interval needs a value: --interval TIME"),
        (["top", "--interval", "2"], "--interval: `2` has no unit; write 2s"),
        (["top", "--interval", "61s"], "--interval: `61s` is not a time from 100 ms to 60.0 s"),
        (["top"], "`weir top` draws on a terminal, and standard output is none"),
        (["stop", "weir.conf"], "`weir.conf` is no process id"),
        (["stop", "0"], "`0` is no process id"),
        (["stop", "1", "2"], "`1` and `2` are two arguments"),
        (["stop", "--control"], "--control needs a value: --control PATH"),
        (["-c", "a", "-c", "b"], "-c is given twice"),
        (["-c"], "-c needs a value: -c FILE"),
    ],
)
def test_a_mistake_is_reported_in_one_line_with_a_remedy(arguments: list[str], said: str) -> None:
    done = weir(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("weir: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_a_configuration_in_place_of_a_folder_is_refused_with_the_right_command(
    tmp_path: Path,
) -> None:
    (tmp_path / "weir.conf").write_text("")
    done = weir("weir.conf", cwd=tmp_path)
    assert done.returncode == 2
    assert "serve it with: weir serve -c weir.conf" in done.stderr
    done = weir("serve", "-c", "weir.conf", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("weir.conf: error: there is nothing to serve")


def test_a_folder_with_the_name_of_a_command_is_served_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    assert weir("models", cwd=tmp_path).returncode == 0
    done = weir("check", "--", "models", cwd=tmp_path)
    assert done.stdout == "models: ok (1 site, 2 listeners)\n"


def test_a_switch_needs_no_value(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    for words in (
        ["--hidden", "site"],
        ["--hidden", "on", "site"],
        ["--hidden=on", "site"],
        ["site", "--hidden"],
    ):
        done = weir("check", "--explain", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert re.search(r"^  hidden +on +flag --hidden$", done.stdout, re.MULTILINE)
    done = weir("check", "--explain", "--hidden", "off", "site", cwd=tmp_path)
    assert re.search(r"^  hidden +off +flag --hidden$", done.stdout, re.MULTILINE)


def test_output_that_cannot_be_written_is_an_error() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [WEIR, "help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("weir: cannot write to standard output: ")


# ---- every text about the settings, and settings.def ----


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_help_lists_every_flag_with_its_default() -> None:
    text = weir("help", "serve").stdout
    flags = re.split(r"^  (?:-\w, )?--", text, flags=re.MULTILINE)[1:]
    described = {flag.split()[0]: words(flag) for flag in flags}
    own = {"config", "ready-fd", "quiet", "help", "version"}
    assert described.keys() - own == {setting.name for setting in settings() if setting.has_flag}
    for setting in settings():
        if not setting.has_flag:
            continue
        special = setting.name in ("listing", "access-log")
        default = setting.default if setting.default.startswith("(") else "default"
        assert default in described[setting.name]
        if not setting.default.startswith("(") and not special:
            assert f"(default {setting.default})" in described[setting.name]


def test_explain_shows_every_setting() -> None:
    text = weir("check", "--explain", "weir.conf.example").stdout
    for setting in settings():
        assert re.search(rf"^  {setting.name} ", text, re.MULTILINE), setting


def manual_default(setting: Setting) -> str:
    """How weir.conf(5) writes a default."""
    if setting.default == "(required)":
        return "Required."
    if setting.default.startswith("("):
        return f"Default: {setting.default.strip('()')}."
    return f"Default: .Ql {setting.default} "


def test_the_manual_of_the_configuration_lists_every_setting_with_its_default() -> None:
    text = (TOP / "docs/man/weir.conf.5").read_text()
    items = re.split(r"^\.It Ic ", text, flags=re.MULTILINE)[1:]
    assert [item.split()[0] for item in items] == [setting.name for setting in settings()]
    for item, setting in zip(items, settings(), strict=True):
        assert manual_default(setting) in words(item)


def test_the_manual_of_the_program_has_every_flag_that_is_no_setting() -> None:
    text = (TOP / "docs/man/weir.1").read_text()
    listed = re.findall(r"^\.It (?:Fl \w , )?Fl Fl ([\w-]+)", text, re.MULTILINE)
    own = ["config", "explain", "control", "now", "json", "prometheus", "openmetrics"]
    own += ["list", "diff", "watch", "check", "ignore-warnings", "interval"]
    own += ["ready-fd", "quiet", "help", "version"]
    assert listed == own


def test_the_example_shows_settings_with_their_defaults() -> None:
    text = (TOP / "weir.conf.example").read_text()
    defaults = {setting.name: setting.default for setting in settings()}
    shown = re.findall(r"^# ([a-z0-9-]+) = (.+)$", text.partition("[site docs]")[0], re.MULTILINE)
    for name, value in shown:
        assert name in defaults
        if not defaults[name].startswith("("):
            assert value == defaults[name]


@pytest.mark.parametrize("cpus", [1, 2])
def test_the_model_that_auto_picks_is_printed_with_the_reason(tmp_path: Path, cpus: int) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < cpus:
        pytest.skip("this machine has one CPU")
    os.sched_setaffinity(0, allowed[:cpus])
    try:
        listed = weir("models").stdout.splitlines()
        server = start([str(tmp_path), "--listen", "127.0.0.1:0"], tmp_path / "stderr")
        server.stop()
    finally:
        os.sched_setaffinity(0, allowed)
    (picked,) = [line for line in listed if "(`auto` picks it: " in line]
    why = picked.partition("picks it: ")[2].removesuffix(")")
    assert "one CPU" in why if cpus == 1 else "2 CPUs" in why
    assert f"model {picked.split()[0]} (auto: {why})" in server.messages()


def test_the_version_names_commit_compiler_libraries_and_features() -> None:
    for command in (["--version"], ["serve", "--version"], ["load", "-V"]):
        done = weir(*command)
        assert (done.returncode, done.stderr) == (0, "")
        first, *rest = done.stdout.splitlines()
        assert re.fullmatch(r"weir \d+\.\d+\.\d+", first)
        said = dict(line.split(maxsplit=1) for line in rest)
        assert list(said) == ["commit", "compiler", "libraries", "features"]
        assert re.fullmatch(r"[0-9a-f]{12}|unknown", said["commit"])
        assert re.match(r"(gcc|clang) \d+\.", said["compiler"])
        for library in ("OpenSSL", "zlib", "liburing", "libseccomp"):
            assert re.search(rf"\b{library} \d", said["libraries"])
        assert "HTTP/2" in said["features"]
