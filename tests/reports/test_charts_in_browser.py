"""Pages of reports in Debian's Chromium: every chart is drawn, nothing is loaded, and no label is cut off."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from crossdock.cli.main import main
from crossdock.cli.render.notebook import draw
from tests.reports.tables import LAST, Tables
from tests.support.browser import chromium

pytestmark = pytest.mark.clients

PATIENCE_MS: Final = 15_000
REPORTS: Final = (
    ["queue"], ["queue", "mail"], ["failures"], ["workers"], ["slow"], ["capacity"], ["cost", "--price", "0.36"],
    ["slo", "--queue", "mail", "--done-within", "5s", "--ratio", "0.9"],
)  # fmt: skip

#: Notes texts that reach over an edge of their canvas.
WATCH: Final = """
window.cut = []; window.written = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const box = this.measureText(text);
  const place = new DOMPoint(x, y).matrixTransform(this.getTransform());
  const left = place.x - box.actualBoundingBoxLeft, right = place.x + box.actualBoundingBoxRight;
  const top = place.y - box.actualBoundingBoxAscent, bottom = place.y + box.actualBoundingBoxDescent;
  window.written.push(text);
  if (left < -1 || top < -1 || right > this.canvas.width + 1 || bottom > this.canvas.height + 1) window.cut.push(text);
  write.call(this, text, x, y);
};
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium("REPORTS") as found:
        yield found


@pytest.fixture(scope="module")
def files(shop: Tables, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("reports")
    made = [folder / f"{number}-{words[0]}.html" for number, words in enumerate(REPORTS)]
    for words, file in zip(REPORTS, made, strict=True):
        place = ["--data", str(shop.folder.parent), "--until", str(LAST), "--html", str(file)]
        assert main(["report", *words, *place]) == 0
    return made


@pytest.mark.parametrize(("width", "scheme"), [(1_280, "light"), (390, "dark")])
def test_every_chart_is_drawn_from_one_file_with_whole_labels(
    browser: Any, files: list[Path], width: int, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, timezone_id="Asia/Tokyo"
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    problems: list[str] = []
    requests: list[str] = []

    def dismiss(dialog: Any) -> None:
        problems.append("a script of a job ran")
        dialog.dismiss()

    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.append(said.text))
    page.on("dialog", dismiss)
    page.on("request", lambda request: requests.append(request.url))
    page.add_init_script(WATCH)
    for file in files:
        page.goto(file.as_uri())
        page.wait_for_function("written.length > 0")
        assert page.locator("figure canvas").count() == page.locator("figure").count() > 0
        assert page.evaluate("cut") == [], file.name
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert requests == [file.as_uri() for file in files]
    assert problems == []
    context.close()


def test_the_legend_has_the_values_at_the_cursor_and_days_are_utc(browser: Any, files: list[Path]) -> None:
    context = browser.new_context(timezone_id="America/New_York")
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.add_init_script(WATCH)
    page.goto(files[1].as_uri())
    page.wait_for_function("written.includes('16 Nov')")
    chart = page.locator("figure").first
    assert chart.locator("[data-series]").all_text_contents() == ["24", "6"]
    assert chart.locator("[data-at]").text_content() == "in all"
    area = chart.locator(".u-over").bounding_box()
    page.mouse.move(area["x"] + area["width"] * 0.9, area["y"] + area["height"] / 2)
    chart.locator("[data-at]:text-is('2026-11-16')").wait_for()
    assert chart.locator("[data-series]").all_text_contents() == ["8", "2"]
    context.close()


def test_a_page_can_be_read_without_javascript(browser: Any, files: list[Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(files[1].as_uri())
    chart = page.locator("figure").first
    assert chart.locator("noscript").is_visible()
    chart.locator("summary").click()
    assert "2026-11-16\t8\t2" in chart.locator("table").inner_text()
    context.close()


def test_a_plot_of_a_notebook_is_drawn_in_its_frame(browser: Any) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.set_content(draw("bars", "Waits", "time", (["mail", "pay"], {"p95": [1.0, 2.0]}))._repr_html_())
    page.frame_locator("iframe").locator("figure canvas").wait_for()
    page.close()
