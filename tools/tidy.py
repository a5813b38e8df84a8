#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the rules of the project that no compiler checks.

    tools/tidy.py           check the tree, and print a line for each finding
    tools/tidy.py --write   draw src/LAYERS into ARCHITECTURE.md, settings.def into
                            docs/configuration.md, and mime.def into docs/media-types.md

The rules are the functions in RULES below. Each takes the tree and yields its
findings. Layout is checked by clang-format, and symbols by tools/symbols.py.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import csource
import layers as layering
import media_types
import settings

LINE_MAX = 100
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 500
TEST_LINES_MAX = 1000  # the tables of a test are long
DEPTH_MAX = 3

SPDX = "SPDX-License-Identifier: MIT"
DIAGRAM_BEGIN = "<!-- drawn from src/LAYERS by tools/tidy.py: begin -->"
DIAGRAM_END = "<!-- end -->"


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class Tree:
    """The files under a folder that are the project's own, by path from its top."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    @classmethod
    def read(cls, top: Path) -> Tree:
        files = {}
        for path in cls._paths(top):
            try:
                files[path] = (top / path).read_bytes().decode()
            except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
                continue  # a picture, a removed file that git still lists, or a link
        return cls(files)

    @staticmethod
    def _paths(top: Path) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            listed = subprocess.run(
                ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                cwd=top,
                capture_output=True,
                text=True,
                check=False,
            )
            if listed.returncode == 0:
                return [path for path in listed.stdout.split("\0") if path]
        # In an unpacked archive, or without git, the list of folders is fixed.
        rooms = "src tests fuzz bench lab tools scripts docs packaging www".split()
        found = [path for room in rooms for path in (top / room).rglob("*") if path.is_file()]
        found += [path for path in top.iterdir() if path.is_file()]
        return [str(path.relative_to(top)) for path in found if "__pycache__" not in path.parts]

    def under(self, *endings: str, room: str = "") -> Iterator[tuple[str, str]]:
        for path in sorted(self.files):
            if path.endswith(endings) and path.startswith(room):
                yield path, self.files[path]

    @cached_property
    def layers(self) -> dict[str, layering.Layer]:
        return layering.parse(self.files["src/LAYERS"])


def layer_of(path: str) -> str:
    """The layer that src/<layer>/file belongs to, or an empty string."""
    parts = PurePosixPath(path).parts
    return parts[1] if len(parts) == 3 and parts[0] == "src" else ""


def includes_follow_layers(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.under(".c", ".h", room="src/"):
        layer = layer_of(path)
        if layer not in tree.layers:
            yield Finding(path, 1, "is in no layer of src/LAYERS")
            continue
        for include in csource.includes(text):
            if not include.ours:
                continue
            used = include.path.split("/")[0]
            if f"src/{include.path}" not in tree.files:
                message = f'"{include.path}" does not exist below src/'
                yield Finding(path, include.line, message)
            elif include.path.endswith(".def"):
                continue  # a table is data, and any layer may read it
            elif used not in tree.layers or not layering.may_include(tree.layers, layer, used):
                message = f"{layer}/ may not include {used}/ (src/LAYERS)"
                yield Finding(path, include.line, message)


def own_header_comes_first(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.under(".c", room="src/"):
        own = path.removesuffix(".c") + ".h"
        found = csource.includes(text)
        if own in tree.files and (not found or f"src/{found[0].path}" != own):
            line = found[0].line if found else 1
            yield Finding(path, line, f'its own header "{own.removeprefix("src/")}" comes first')


def headers_are_included_once(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.under(".h"):
        if "#pragma once" not in text.splitlines():
            yield Finding(path, 1, "a header needs #pragma once")


def files_name_their_licence(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.under(".c", ".h"):
        if not text.startswith(f"/* {SPDX}"):
            yield Finding(path, 1, f"begins with /* {SPDX}")
    scripts = {path: text for path, text in tree.files.items() if text.startswith("#!")}
    scripts |= dict(tree.under(".py", "meson.build", "Makefile"))
    for path, text in sorted(scripts.items()):
        if f"# {SPDX}" not in text.splitlines()[:2]:
            yield Finding(path, 1, f"begins with # {SPDX}")


# In two pieces, because the rule also reads this file.
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
LONG_LINES_ALLOWED = (".def", ".md")


def lines_are_clean(tree: Tree) -> Iterator[Finding]:
    endings = (".c", ".h", ".def", ".py", ".sh", ".md", ".toml", ".build", "LAYERS", "Makefile")
    for path, text in tree.under(*endings):
        if text and not text.endswith("\n"):
            yield Finding(path, text.count("\n") + 1, "the last line has no end")
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > LINE_MAX and not path.endswith(LONG_LINES_ALLOWED):
                yield Finding(path, number, f"{len(line)} columns; {LINE_MAX} at most")
            if "\t" in line and not path.endswith("Makefile"):
                yield Finding(path, number, "a tab")
            if line != line.rstrip():
                yield Finding(path, number, "space at the end of the line")
            if match := UNFINISHED.search(line):
                yield Finding(path, number, f"{match.group()}: finish the work or remove the mark")


def files_and_functions_are_short(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.under(".c", ".h", ".py"):
        most = TEST_LINES_MAX if path.startswith("tests/") else FILE_LINES_MAX
        if (count := text.count("\n")) > most:
            yield Finding(path, count, f"{count} lines; {most} at most")
    for path, text in tree.under(".c", ".h"):
        for function in csource.functions(text):
            if function.length > FUNCTION_LINES_MAX:
                message = f"{function.name}: {function.length} lines; {FUNCTION_LINES_MAX} at most"
                yield Finding(path, function.line, message)
            if function.depth > DEPTH_MAX:
                message = f"{function.name}: nested {function.depth} deep; {DEPTH_MAX} at most"
                yield Finding(path, function.deepest_line, message)


@dataclass(frozen=True)
class Ban:
    """Calls that have a better form, or belong into another layer."""

    names: str
    instead: str
    layers: tuple[str, ...] = ()  # where banned. Empty: in all of src/
    allowed_in: tuple[str, ...] = ()  # files or folders below src/ that may call them


KNOWS_NO_SYSTEM = ("base", "http")
HAS_NO_DESCRIPTORS = ("base", "http", "session", "config")
BANS = (
    Ban("sprintf vsprintf", "snprintf, or base/buf.h"),
    Ban("strcpy strcat stpcpy strncpy strncat", "memcpy with a length, or base/buf.h"),
    Ban("strtok gets alloca scanf sscanf fscanf", "base/span.h"),
    Ban("atoi atol atoll strtol strtoul strtoll strtoull strtod", "base/num.h"),
    Ban("system popen tmpnam mktemp signal", "a safer function"),
    Ban("sleep usleep nanosleep", "wait for the event itself"),
    Ban("rand srand random srandom", "getrandom"),
    Ban("gmtime localtime ctime asctime", "the _r form, or http/date.h"),
    Ban("assert", "CHECK (base/check.h)"),
    Ban("clock_gettime gettimeofday time", "os/clock.h", allowed_in=("os/clock.c", "os/file.c")),
    Ban("abort", "CHECK (base/check.h)", allowed_in=("base/check.c",)),
    Ban("exit _exit", "return an error", allowed_in=("program/", "server/", "model/fork.c")),
    Ban(
        "malloc calloc realloc reallocarray free strdup strndup aligned_alloc",
        "use storage of the caller",
        KNOWS_NO_SYSTEM,
    ),
    Ban(
        "read write pread pwrite readv writev open openat close recv send recvfrom sendto"
        " recvmsg sendmsg sendfile splice accept accept4 socket bind listen connect shutdown"
        " setsockopt getsockopt epoll_create1 epoll_ctl epoll_wait epoll_pwait poll ppoll select",
        "leave it to os/ or model/",
        HAS_NO_DESCRIPTORS,
        allowed_in=("base/check.c",),
    ),
    Ban(
        "recv send sendmsg recvmsg sendfile epoll_wait epoll_ctl accept4 socket",
        "leave it to model/ or server/",
        ("os", "site"),
        allowed_in=("os/notify.c", "os/socket.c"),
    ),
    Ban(
        "fork vfork execve waitpid waitid kill pthread_create thrd_create",
        "leave it to model/ or server/",
        ("base", "http", "os", "log", "site", "session", "config"),
        allowed_in=("os/process.c",),
    ),
)


def banned_calls(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.under(".c", ".h", room="src/"):
        below = path.removeprefix("src/")
        for ban in BANS:
            if ban.layers and layer_of(path) not in ban.layers:
                continue
            if below.startswith(ban.allowed_in):
                continue
            for name in ban.names.split():
                for line in csource.calls(text, name):
                    yield Finding(path, line, f"{name}() is not allowed here: {ban.instead}")


EMPTY_NAMES = re.compile(r"(?:^|[_/.-])(util|helper|common|misc|manager)s?(?=$|[_/.-])")


def names_say_something(tree: Tree) -> Iterator[Finding]:
    for path in sorted(tree.files):
        if match := EMPTY_NAMES.search(path):
            yield Finding(path, 1, f"a name that says nothing: {match.group(1)}")


SELF_STANDING = re.compile(
    r"src/\w+/\w+\.c|tests/(?:unit/\w+|property|concurrency)/\w+_test\.c"
    r"|tests/(?:conformance|cost|faults|sharing|support)/\w+\.c|fuzz/(?:\w+_fuzz|replay|seeds)\.c"
    r"|bench/(?:floor(?:_load)?|metronome|sync|cache(?:_\w+)?)\.c|docs/example/\w+/\w+\.(?:c|def)"
)


def nothing_lies_idle(tree: Tree) -> Iterator[Finding]:
    """A C file is built because of its folder. Another file includes all other files."""
    included = set()
    for path, text in tree.under(".c", ".h", ".def"):
        for include in csource.includes(text):
            if include.ours:
                included |= {
                    f"src/{include.path}",
                    f"tests/{include.path}",
                    str(PurePosixPath(path).parent / include.path),
                }
    for path, _ in tree.under(".c", ".h", ".def"):
        if path not in included and not SELF_STANDING.fullmatch(path):
            yield Finding(path, 1, "is neither built nor included")


LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def links_lead_somewhere(tree: Tree) -> Iterator[Finding]:
    folders = {str(parent) for path in tree.files for parent in PurePosixPath(path).parents}
    for path, text in tree.under(".md"):
        for number, line in enumerate(text.splitlines(), 1):
            for match in LINK.finditer(line):
                target = match.group(1)
                if ":" in target:
                    continue
                place = _normal(PurePosixPath(path).parent / target)
                if place not in tree.files and place not in folders:
                    yield Finding(path, number, f"{target} does not exist")


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts = parts[:-1]
        else:
            parts.append(part)
    return "/".join(parts) or "."


def with_diagram(text: str, layers: dict[str, layering.Layer]) -> str:
    """ARCHITECTURE.md with a new drawing between the marks."""
    before, begin, rest = text.partition(DIAGRAM_BEGIN)
    _, end, after = rest.partition(DIAGRAM_END)
    if not begin or not end:
        raise ValueError("the marks of the drawing are missing")
    return f"{before}{begin}\n```text\n{layering.draw(layers)}```\n{end}{after}"


def diagram_is_true(tree: Tree) -> Iterator[Finding]:
    text = tree.files.get("ARCHITECTURE.md", "")
    try:
        current = with_diagram(text, tree.layers) == text
    except ValueError as missing:
        yield Finding("ARCHITECTURE.md", 1, str(missing))
        return
    if not current:
        line = text[: text.index(DIAGRAM_BEGIN)].count("\n") + 1
        yield Finding("ARCHITECTURE.md", line, "differs from src/LAYERS: run `make diagram`")


SETTINGS_PAGE = "docs/configuration.md"
SETTINGS_TABLES = ("src/config/settings.def", "src/config/kinds.def")


def settings_are_drawn(tree: Tree) -> Iterator[Finding]:
    page = tree.files.get(SETTINGS_PAGE, "")
    tables = [tree.files.get(path, "") for path in SETTINGS_TABLES]
    try:
        current = settings.with_tables(page, *tables) == page
    except ValueError as missing:
        yield Finding(SETTINGS_PAGE, 1, str(missing))
        return
    if not current:
        yield Finding(SETTINGS_PAGE, 1, "differs from settings.def: run `make format`")


TYPES_PAGE = "docs/media-types.md"
TYPES_TABLE = "src/site/mime.def"


def media_types_are_drawn(tree: Tree) -> Iterator[Finding]:
    page = tree.files.get(TYPES_PAGE, "")
    try:
        current = media_types.with_tables(page, tree.files.get(TYPES_TABLE, "")) == page
    except ValueError as missing:
        yield Finding(TYPES_PAGE, 1, str(missing))
        return
    if not current:
        yield Finding(TYPES_PAGE, 1, "differs from mime.def: run `make format`")


RULES: tuple[Callable[[Tree], Iterator[Finding]], ...] = (
    includes_follow_layers,
    own_header_comes_first,
    headers_are_included_once,
    files_name_their_licence,
    lines_are_clean,
    files_and_functions_are_short,
    banned_calls,
    names_say_something,
    nothing_lies_idle,
    links_lead_somewhere,
    diagram_is_true,
    settings_are_drawn,
    media_types_are_drawn,
)


def findings(tree: Tree) -> list[Finding]:
    return sorted(finding for rule in RULES for finding in rule(tree))


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the house rules.")
    parser.add_argument("--write", action="store_true", help="draw the generated parts of pages")
    options = parser.parse_args()
    top = Path(__file__).resolve().parent.parent
    tree = Tree.read(top)
    if options.write:
        page = top / "ARCHITECTURE.md"
        page.write_text(with_diagram(page.read_text(), tree.layers))
        page = top / SETTINGS_PAGE
        tables = [tree.files[path] for path in SETTINGS_TABLES]
        page.write_text(settings.with_tables(page.read_text(), *tables))
        page = top / TYPES_PAGE
        page.write_text(media_types.with_tables(page.read_text(), tree.files[TYPES_TABLE]))
        return 0
    found = findings(tree)
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
