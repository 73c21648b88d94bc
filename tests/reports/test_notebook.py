"""The notebook of the docs, cell after cell, over small tables. A kernel would bring twenty packages for the same."""

import json
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from tests.reports.tables import Tables, day

NOTEBOOK = Path(__file__).parents[2] / "docs/how-to/notebook.ipynb"


def test_the_notebook(shop: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crossdock-data").symlink_to(shop.folder.parent)
    book = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    names: dict[str, Any] = {}
    for number, cell in enumerate(book["cells"]):
        if cell["cell_type"] == "code":
            script = tmp_path / f"cell-{number}.py"
            script.write_text("".join(cell["source"]), "utf-8")
            names = {name: each for name, each in run_path(str(script), names).items() if not name.startswith("__")}
    assert (day(0), "mail", 8, 2) in [row[:4] for row in names["days"].fetchall()]
    [(n, *found)] = [row[2:] for row in names["percentiles"].fetchall() if row[:2] == ("mail", "run")]
    assert (n, found) == (24, pytest.approx([1.0] * 3, rel=0.0197))
    assert names["groups"].row(0)[:3] == ("mail", "Timeout", 6)
    assert len(names["slow"]) == 6
    assert (tmp_path / "queues.html").stat().st_size > 1_000
