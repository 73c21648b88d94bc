"""The documentation site: it builds without a warning, and every page is in its navigation."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest
from tools.docs_hooks import MERMAID, expand, on_page_content

from tests.support.patience import PATIENCE_S

ROOT: Final = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    missing = [name for name in ("mkdocs", "material", "mkdocstrings") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"the site is not built: {', '.join(missing)} not installed; make docs installs it")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        check=False, capture_output=True, text=True, timeout=4 * PATIENCE_S,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return folder


def pages() -> set[str]:
    """The pages of the site. A README.md is the index of its folder."""
    paths = (path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md"))
    return {str(path.with_name("index.html") if path.stem == "README" else path) for path in paths}


def test_every_page_is_built(site: Path) -> None:
    assert {page for page in pages() if not (site / page).exists()} == set()


def test_every_page_is_in_the_navigation(site: Path) -> None:
    shown = set(re.findall(r'href="([\w./-]+\.html)"', (site / "index.html").read_text("utf-8")))
    assert pages() - {"index.html"} - shown == set()


def test_the_api_reference_shows_the_clients(site: Path) -> None:
    page = (site / "reference" / "api.html").read_text("utf-8")
    for name in (
        "client.admin.AdminClient",
        "lake.query.choose",
        "lake.status.status",
    ):
        assert f'id="crossdock.{name}"' in page


def test_the_reference_of_the_python_client_shows_its_methods(site: Path) -> None:
    page = (site / "reference" / "python-client.html").read_text("utf-8")
    for name in ("client.client.Client.push", "client.aio.AsyncClient.push_many", "client.jobs.NewJob.at"):
        assert f'id="crossdock.{name}"' in page


def test_a_page_loads_nothing_from_other_hosts(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text("utf-8"))
        assert loaded == [], page


def test_a_folder_in_the_navigation_stands_for_its_other_pages(tmp_path: Path) -> None:
    (tmp_path / "explain").mkdir()
    for name in ("b.md", "0.md", "README.md", "named.md"):
        (tmp_path / "explain" / name).touch()
    nav = [{"Explain": ["explain/named.md", "explain/"]}, {"Decisions": ["adr/"]}, {"Start": "start.md"}]
    assert expand(nav, tmp_path) == [
        {"Explain": ["explain/named.md", "explain/README.md", "explain/0.md", "explain/b.md"]},
        {"Start": "start.md"},
    ]


def test_pages_with_a_drawing_load_the_local_mermaid(tmp_path: Path) -> None:
    drawing, page, config = '<pre class="mermaid">', SimpleNamespace(url="a/b.html"), {"docs_dir": tmp_path}
    assert on_page_content(drawing, page, config, None) == drawing
    (tmp_path / MERMAID).parent.mkdir()
    (tmp_path / MERMAID).touch()
    assert f'src="../{MERMAID}"' in on_page_content(drawing, page, config, None)
    assert on_page_content("<p>", page, config, None) == "<p>"
