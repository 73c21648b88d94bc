"""README, the documentation and the files of the project: links, commands and messages in them exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import crossdock
from crossdock.cli.catalog import COMMANDS, Noun

ROOT: Final = Path(__file__).parents[3]
SOURCE: Final = Path(crossdock.__file__).parent

HOW_TO: Final = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "how-to").glob("*.md"))
FILES: Final = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
PAGES: Final = ("README.md", "docs/index.md", "docs/start.md", *HOW_TO)

_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COMMAND: Final = re.compile(r"(?:^|[`/$( ])crossdock ([a-z]+)(?: ([a-z|]+))?", re.MULTILINE)
#: An example of the error for a command that does not exist
_UNKNOWN: Final = re.compile(r"^\$ crossdock .*\ncrossdock: No such command .*$", re.MULTILINE)
_MESSAGE: Final = re.compile(r"^```text\n(.*?)^```$|^\| `([^`]+)` \|", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """As GitHub and the site make them."""
    heads = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", [*PAGES, *FILES])
def test_links_lead_to_a_file_and_a_heading(name: str) -> None:
    page = ROOT / name
    for link in _LINK.findall(_FENCE.sub("", page.read_text("utf-8"))):
        file, _, anchor = link.partition("#")
        target = (page.parent / file) if file else page
        assert not link.startswith("http"), f"{name}: {link}"
        assert target.exists(), f"{name}: {link}"
        assert not anchor or anchor in anchors(target), f"{name}: {link}"


@pytest.mark.parametrize("name", PAGES)
def test_commands_exist(name: str) -> None:
    for word, verbs in _COMMAND.findall(_UNKNOWN.sub("", (ROOT / name).read_text("utf-8"))):
        if word in ("is", "are", "and", "server", "has", "import"):
            continue
        assert word in COMMANDS, f"{name}: crossdock {word}"
        noun = COMMANDS[word]
        if isinstance(noun, Noun):
            for verb in filter(None, verbs.split("|")):
                assert verb in noun.verbs, f"{name}: crossdock {word} {verb}"


def texts() -> Iterator[str]:
    """Every string in the source. `…` and `%` conversions stand for values that are filled in."""
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)  # type: ignore[misc]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield re.sub(r"%[ds]", "…", node.value)


def quoted() -> list[str]:
    page = (ROOT / "docs" / "how-to" / "troubleshoot.md").read_text("utf-8")
    return [(block or cell).strip() for block, cell in _MESSAGE.findall(page)]


def test_troubleshooting_quotes_messages_of_the_server() -> None:
    known = "\n".join(texts())
    messages = quoted()
    assert len(messages) > 20
    parts = [part for message in messages for part in map(str.strip, message.split("…")) if part.strip(";.()")]
    assert [part for part in parts if part not in known] == []
