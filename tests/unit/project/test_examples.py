"""The how-to pages of frameworks show the example applications: each code block is a part of the file that it names."""

import re
from typing import Final

import pytest

from tests.support.doc_pages import blocks
from tests.support.examples import EXAMPLES

FRAMEWORKS: Final = ("fastapi", "django", "flask")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_code_on_the_page_is_the_code_of_the_example(framework: str) -> None:
    shown = blocks(f"docs/how-to/{framework}.md", "python")
    assert len(shown) >= 3
    for block in shown:
        name = re.match(r"# (\S+)\n", block)
        assert name is not None, f"the block does not name its file: {block}"
        text = (EXAMPLES / framework / name[1]).read_text("utf-8")
        assert block[name.end() :] in text, f"examples/{framework}/{name[1]} has other code than:\n{block}"


def test_the_readme_names_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text("utf-8")
    folders = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
    assert sorted(re.findall(r"^\| \[(\w+)\]", text, re.MULTILINE)) == folders
