"""A short list of phrases that are hard to read. Each has a plain word in its place."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.support.project_files import ROOT, text_files

FILES: Final = text_files(but="test_prose.py")

#: Phrase and replacement.
PHRASES: Final = {
    r"\bdoors?\b": "protocol, listener",
    r"\bwhoever\b|\bwhomever\b": "the client, the worker, the caller",
    r"\bwho (?:sends?|sent|asks|asked|leases?|brings?|waits|holds|pushed|wants)\b": "a client that …",
    r"\b(?:no|some|any|every)body\b": "no client, a worker, each connection",
    r"\banew\b": "again",
    r"\baffairs?\b": "responsibility, subject",
    r"\bhow manieth\b": "the number of",
    r"\bso many (?:of|bytes|seconds|jobs|at|more)\b": "this many",
    r"\b(?:is|are|was|were) told\b": "receives, is reported",
    r"\btold (?:so|late|at once)\b": "returned, delayed",
    r"\bwithout a word\b|\bnot a word\b": "silently",
    r"\bbrought along\b": "carried, included",
    r"\brubbish\b": "invalid input",
    r"\bgoodbyes?\b": "shutdown",
    r"\bkeeps? house\b": "housekeeping",
    r"\bfaces?\b": "protocol data",
    r"\bthe seeds?\b": "the original protocol document",
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_has_none_of_the_phrases(path: Path) -> None:
    text = path.read_text("utf-8")
    found = [
        f"line {text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}; write {better}"
        for phrase, better in PHRASES.items()
        for match in re.finditer(phrase, text, re.IGNORECASE)
    ]
    assert found == []
