# SPDX-License-Identifier: MIT
"""Reads src/config/settings.def and draws it as the tables of docs/configuration.md."""

from __future__ import annotations

import re
from dataclasses import dataclass

SETTING = re.compile(
    r'^(SERVER|SITE|PATH)_SETTING\(\w+, "([^"]+)", (\w+), \w+, "([^"]+)", \w+,'
    r'((?:\s*"(?:[^"\\]|\\.)*")+)\)',
    re.MULTILINE,
)
LIST_KIND = re.compile(r"^KIND\((\w+), LIST,", re.MULTILINE)
MARK = "<!-- drawn from src/config/settings.def by tools/tidy.py: {} -->\n"
END = "<!-- end -->"


@dataclass(frozen=True)
class Setting:
    """One line of settings.def; `section` is SERVER, SITE or PATH."""

    section: str
    name: str
    kind: str
    default: str
    sentence: str


def parse(text: str) -> list[Setting]:
    found = []
    for section, name, kind, default, strings in SETTING.findall(text):
        sentence = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', strings)).replace('\\"', '"')
        found.append(Setting(section, name, kind, default, sentence))
    return found


def _row(setting: Setting, lists: set[str]) -> str:
    default = setting.default
    shown = default.strip("()") if default.startswith("(") else f"`{default}`"
    several = "; several" if setting.kind in lists else ""
    sentence = setting.sentence.replace("*", "\\*")
    return f"| `{setting.name}` | {shown} | {sentence}{several} |\n"


def with_tables(page: str, settings_def: str, kinds_def: str) -> str:
    """The page with the three tables between their marks drawn again."""
    lists = set(LIST_KIND.findall(kinds_def))
    for section in ("SERVER", "SITE", "PATH"):
        before, begin, rest = page.partition(MARK.format(section.lower()))
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise ValueError(f"the marks of the {section.lower()} settings are missing")
        rows = "".join(_row(s, lists) for s in parse(settings_def) if s.section == section)
        page = (
            f"{before}{begin}\n| setting | default | meaning |\n|---|---|---|\n{rows}\n{end}{after}"
        )
    return page
