"""`crossdock job replay --master`: the verb as an operator runs it, wherever its Spark is."""

from pathlib import Path

from crossdock.lake.query import Filter, choose
from tests.pipeline.clusters import ENV, flags
from tests.support.command_line import Operator
from tests.support.patience import PROGRAM_PATIENCE_S
from tests.support.server import Server

QUEUE = "mail"


def replays(lake: Path, folder: Path, master: str, conf: dict[str, str]) -> None:
    """All of a queue's history, once: the second time is told of the first."""
    (folder / "data").mkdir()
    (folder / "data" / "lake").symlink_to(lake)
    count = len(choose(lake, Filter(queue=QUEUE)).numbers)
    assert count > 10
    with Server(folder / "data", {"lake.on": False}, protocols=("redis",)) as server:
        operator = Operator(folder, server_data="data")
        operator.environment |= {name: ENV[name] for name in ("PYTHONPATH", "PYSPARK_PYTHON", "SPARK_LOCAL_IP")}
        operator.patience_s = PROGRAM_PATIENCE_S  # a Spark of its own
        redis = f"redis=127.0.0.1:{server.ports['redis']}"
        words = ("job", "replay", "--queue", QUEUE, "--id", "by-spark", "--yes", "--listen", redis)
        done = operator.json(*words, "--master", master, *flags(conf))
        assert done == {"matched": count, "id": "by-spark", "new": count, "known": 0}
        again = operator.run(*words)
        assert f"replay by-spark is complete: it pushed {count} jobs before" in again.err
