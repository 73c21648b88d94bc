"""The text files of the project, for tests that read all of them."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

_PATTERNS: Final = (
    "src/**/*.py",
    "tests/**/*.py",
    "tests/transcripts/**/*.txt",
    "bench/**/*.py",
    "bench/**/*.md",
    "tools/**/*.py",
    "docs/**/*.md",
    "examples/**/*.py",
    "examples/**/*.md",
    ".github/**/*.*",
    "*.md",
)


def text_files(but: str) -> list[Path]:
    """All text files of the project except one, which is named without its folder."""
    return sorted(path for pattern in _PATTERNS for path in ROOT.glob(pattern) if path.is_file() and path.name != but)
