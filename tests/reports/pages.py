"""Checks an HTML page as a browser reads it: elements are closed, nothing is loaded and no script runs."""

import re
from html.parser import HTMLParser
from typing import Final
from xml.etree import ElementTree

#: All elements of a page. Any other element comes from unescaped data.
ELEMENTS: Final = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "p", "section", "div", "figure",
    "figcaption", "small", "span", "svg", "path", "rect", "circle", "text", "table", "thead", "tbody", "tr", "th", "td",
    "footer",
}  # fmt: skip
ATTRIBUTES: Final = {
    "lang", "charset", "http-equiv", "content", "name", "class", "viewBox", "viewbox", "role", "aria-label", "width",
    "height", "x", "y", "cx", "cy", "r", "d", "text-anchor",
}  # fmt: skip
_VOID: Final = {"meta"}


class Checked(HTMLParser):
    """Raises AssertionError if the page is wrong."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self._texts: list[str] = []
        self.plots: list[str] = []  #: their labels
        self.feed(page)
        self.close()
        assert self.open == []
        ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
        assert not re.search(r"url\(|@import|https?:|//", page)
        assert "default-src 'none'" in page
        assert all(char.isprintable() or char == "\n" for char in page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        assert {name for name, _ in attrs} <= ATTRIBUTES, attrs
        if tag not in _VOID:
            self.open.append(tag)
        label = dict(attrs).get("aria-label")
        if tag == "svg" and label and label != "day by day":
            self.plots.append(label)

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
