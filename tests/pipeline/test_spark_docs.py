"""The examples of docs/how-to/spark.md, run unchanged, one after the other."""

from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crossdock.client.admin import AdminClient
from tests.support.doc_pages import blocks
from tests.support.lake_load import row_count
from tests.support.patience import IDLE_PATIENCE_S, wait_until
from tests.support.server import Server

PAGE = "docs/how-to/spark.md"


@pytest.mark.slow
def test_the_examples_run(spark: SparkSession, tmp_path: Path) -> None:
    with Server(tmp_path / "crossdock-data", {"lake.segment_s": 0.2}, protocols=("redis",)) as server:
        names: dict[str, Any] = {}
        for number, block in enumerate(blocks(PAGE, "python")):
            text = block.replace("local[*]", "local[1]").replace('.option("kind"', f'{at(server)}.option("kind"')
            text = text.replace('.option("run", "billing-test")', f'{at(server)}.option("run", "billing-test")')
            text = text.replace("7379", str(server.ports["redis"])).replace('"crossdock-data', f'"{server.data}')
            text = text.replace("redis://:password@10.0.0.5:", "redis://127.0.0.1:")
            for folder in ("checkpoint", "checkpoint-files", "failures"):
                text = text.replace(f'"{folder}"', f'"{tmp_path / folder}"')
            text = text.replace('f"failures/', f'f"{tmp_path}/named/')
            script = tmp_path / f"block-{number}.py"
            script.write_text(text, "utf-8")
            names = {name: each for name, each in run_path(str(script), names).items() if not name.startswith("__")}
            if number == 1:
                wait_for_history(server, 1_000)
        with AdminClient(server.data) as client:
            assert len(list(client.rows("jobs", queue="billing"))) == 1_000, "no job is pushed back into its queue"
            rows = list(client.rows("jobs", queue="billing-test"))
        assert len(rows) == 100
        assert all(row["jid"].startswith("test-") for row in rows)


def at(server: Server) -> str:
    return f'.option("port", {server.ports["redis"]})'


def wait_for_history(server: Server, events: int) -> None:
    lake = server.data / "lake"
    wait_until(lambda: row_count(lake) >= events, "the lake", IDLE_PATIENCE_S)
