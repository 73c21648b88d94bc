"""Hooks of the documentation site (mkdocs.yml)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

#: `make docs` downloads it. On pages without this script the theme loads Mermaid from the web.
MERMAID: Final = "javascripts/mermaid.min.js"

Nav = list[Any]  #: as in mkdocs.yml: paths, and dicts of a title to a path or to another list


def on_config(config: Any) -> Any:
    config["nav"] = expand(config["nav"], Path(config["docs_dir"]))
    return config


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Add the local copy of Mermaid to pages with a drawing, so that they need no network."""
    if 'class="mermaid"' not in html or not (Path(config["docs_dir"]) / MERMAID).exists():
        return html
    above = "../" * page.url.count("/")
    return f'{html}\n<script src="{above}{MERMAID}"></script>\n'


def expand(nav: Nav, docs: Path) -> Nav:
    """Replace `folder/` by all pages of that folder which the navigation does not name, README.md first. Drop empty
    sections."""
    named = set(_paths(nav))

    def pages(entry: Any) -> Nav:
        if isinstance(entry, dict):
            ((title, inner),) = entry.items()
            if isinstance(inner, list):
                found = [page for each in inner for page in pages(each)]
                return [{title: found}] if found else []
            return [entry]
        if not entry.endswith("/"):
            return [entry]
        files = sorted((docs / entry).glob("*.md"), key=lambda path: (path.name != "README.md", path.name))
        return [path for file in files if (path := file.relative_to(docs).as_posix()) not in named]

    return [page for entry in nav for page in pages(entry)]


def _paths(nav: Nav) -> Iterator[str]:
    for entry in nav:
        if isinstance(entry, dict):
            for inner in entry.values():
                yield from _paths(inner if isinstance(inner, list) else [inner])
        else:
            yield entry
