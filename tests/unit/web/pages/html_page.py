"""What a browser would find in a page: elements, attributes and text."""

from html.parser import HTMLParser
from typing import Any


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self._parts: list[str] = []
        self.feed(text)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._parts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self._parts.append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def unsafe(self) -> list[Any]:
        """Elements and attributes that no page of ours has: they come from data that was not escaped."""
        found: list[Any] = [tag for tag, _ in self.elements if tag in ("img", "iframe", "object", "base")]
        for tag, attributes in self.elements:
            found += [(tag, name) for name in attributes if name.startswith("on") or name == "style"]
            found += [(tag, name, value) for name, value in attributes.items() if _leaves(name, value)]
            if tag in ("script", "style") and not attributes.get("nonce"):
                found.append((tag, "without a nonce"))
        return found


def _leaves(name: str, value: str) -> bool:
    """Does the address lead to another host, or run a script?"""
    return name in ("href", "src", "action", "formaction") and not (value.startswith(("/", "#")) and value[:2] != "//")
