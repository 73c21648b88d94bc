"""Runs the cells of the documentation notebook in this process. A Jupyter kernel would need twenty packages."""

import json
from pathlib import Path
from runpy import run_path
from typing import Any

from tests.support.doc_pages import ROOT

NOTEBOOK = ROOT / "docs/how-to/notebook.ipynb"


def run_cells(folder: Path, *, spark: bool) -> dict[str, Any]:
    """The names that the cells define. Without Spark, the last part is left out."""
    book = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert all(not cell.get("outputs") for cell in book["cells"])
    names: dict[str, Any] = {}
    for number, cell in enumerate(book["cells"]):
        source = "".join(cell["source"])
        if not spark and source.startswith("## The same tables in Spark"):
            break
        if cell["cell_type"] == "code":
            script = folder / f"cell-{number}.py"
            script.write_text(source, "utf-8")
            names = {name: each for name, each in run_path(str(script), names).items() if not name.startswith("__")}
    return names
