"""Every page and section that code, tests and docs cite exists in the repository."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.support.project_files import ROOT, text_files

TEXTS: Final = text_files(but="test_references.py")

_SECTION: Final = re.compile(r"`?([a-z-]+\.md)`?,? sections? (\d+(?:\.\d+)*)(?: (?:to|and) (\d+(?:\.\d+)*))?")
_PATH: Final = re.compile(r"\bdocs/[a-z-]+(?:/[a-z0-9-]+)*\.(?:md|ipynb|svg|png)\b")
_HEADING: Final = re.compile(r"^#+ (\d+(?:\.\d+)*)\.? ", re.MULTILINE)

#: How comments cited pages that are not part of the repository.
_OUTSIDE: Final = re.compile(
    r"\b(?:MODEL|RELIABILITY|HOUSE|SCALE|DESIGN|EXPERIENCE)(?: section)? (?:T|I)?\d"
    r"|\bprotocol page\b|\b(?:qless|faktory|resqu|workq|masenko) page\b|\(page (?:section )?\d"
)


@cache
def sections() -> dict[str, frozenset[str]]:
    """The numbered sections of each page, by file name. A reference needs no folder."""
    return {path.name: frozenset(_HEADING.findall(path.read_text("utf-8"))) for path in ROOT.glob("docs/**/*.md")}


def broken(text: str) -> Iterator[str]:
    for match in _SECTION.finditer(re.sub(r"\s*\n\s*(?:#:? ?)?", " ", text)):
        page, *numbers = match.groups()
        if page not in sections():
            yield f"{match[0]}: there is no page {page}"
        else:
            missing = [each for each in numbers if each and each not in sections()[page]]
            yield from (f"{match[0]}: there is no section {each}" for each in missing)
    for match in _PATH.finditer(text):
        if not (ROOT / match[0]).exists():
            yield f"{match[0]} does not exist"
    yield from (f"{match[0]}: not in the repository" for match in _OUTSIDE.finditer(text))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_file_cites_exists(path: Path) -> None:
    assert list(broken(path.read_text("utf-8"))) == []


def test_names_of_pages_with_numbered_sections_are_unique() -> None:
    numbered = [path.name for path in ROOT.glob("docs/**/*.md") if _HEADING.search(path.read_text("utf-8"))]
    assert sorted(numbered) == sorted(set(numbered))


@pytest.mark.parametrize(
    "text",
    [
        "(faktory.md section 99)",
        "nothing.md section 1",
        "# see model.md\n# section 99",
        "docs/explain/nothing.md",
        "MODEL section 6",
        "(page 3.4)",
        "RELIABILITY T5",
    ],
)
def test_a_broken_reference_is_found(text: str) -> None:
    assert list(broken(text))
