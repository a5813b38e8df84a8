# SPDX-License-Identifier: MIT
"""What each model is good for, in the words of docs/models.md."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent.parent.parent / "docs" / "models.md"


def good_for() -> dict[str, str]:
    """Model -> what it is good for; empty where docs/ is not beside the package."""
    try:
        text = PAGE.read_text()
    except OSError:
        return {}
    table = text.partition("| is good for |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE)
    return {name: words.replace("`", "") for name, words in rows}
