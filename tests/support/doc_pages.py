"""Code blocks of the documentation pages."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    return [body for tag, body in _BLOCK.findall((ROOT / page).read_text("utf-8")) if tag == language]
