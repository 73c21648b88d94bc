"""Checks an HTML page as a browser reads it: elements are closed, nothing is loaded, only the charts' scripts run."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any, Final
from xml.etree import ElementTree

from crossdock.web.chart_specs import SCRIPTS, STYLES

#: All elements of a page. Any other element comes from unescaped data.
ELEMENTS: Final = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "p", "section", "div", "figure",
    "figcaption", "small", "span", "i", "b", "noscript", "details", "summary", "table", "thead", "tbody", "tr", "th",
    "td", "footer", "script",
}  # fmt: skip
ATTRIBUTES: Final = {
    "lang", "charset", "http-equiv", "content", "name", "class", "role", "aria-label", "data-chart", "data-series",
    "data-at",
}  # fmt: skip
_VOID: Final = {"meta"}
_ASSETS: Final = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


class Checked(HTMLParser):
    """Raises AssertionError if the page is wrong."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self._texts: list[str] = []
        self._policy = ""
        self.plots: dict[str, Any] = {}  #: what the charts draw, by title and unit
        assets = _ASSETS.findall(page)
        self.feed(_ASSETS.sub("", page))
        self.close()
        assert self.open == []
        self._check_assets(assets)
        ElementTree.fromstring(_ASSETS.sub("", page).removeprefix("<!DOCTYPE html>\n"))
        assert all(char.isprintable() or char == "\n" for char in _ASSETS.sub("", page))

    def _check_assets(self, assets: list[tuple[str, str]]) -> None:
        """The policy allows them, and nothing else. None can end its element early."""
        texts: dict[str, list[str]] = {"script": [], "style": []}
        for name, text in assets:
            texts[name].append(text)
            assert not re.search(r"</|<!--", text)
        assert texts["script"] == [file.read_text("utf-8") for file in SCRIPTS]
        assert texts["style"][:-1] == [file.read_text("utf-8") for file in STYLES]
        assert not re.search(r"url\(|@import|https?:", "".join(texts["style"]))
        hashes = {
            name: " ".join(
                f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in of
            )
            for name, of in texts.items()
        }
        assert self._policy == f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS - {"script", "style"}, tag
        assert {name for name, _ in attrs} <= ATTRIBUTES, attrs
        if tag not in _VOID:
            self.open.append(tag)
        found = {name: value or "" for name, value in attrs}
        if "http-equiv" in found:
            self._policy = found["content"]
        if tag == "figure":
            self.plots[found["aria-label"]] = json.loads(found["data-chart"])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self._texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self._texts)
