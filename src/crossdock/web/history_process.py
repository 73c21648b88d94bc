"""The child process that reads the journal, the lake and the tables, so that the web process need not load Arrow.

    python -m crossdock.journal.child_process crossdock.web.history_process

A request is a line of JSON on stdin. The reply is one or more parts, each with its length on a line before it. The last
part has `finished` or `error`. The process ends with its stdin.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from crossdock.model.errors import CrossdockError


def main() -> None:
    # Read when Arrow is loaded. The system's allocator returns freed memory, and the process is limited in memory.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    os.environ.setdefault("TOKIO_WORKER_THREADS", "2")
    from crossdock.web import history_queries

    history_queries.use_one_thread()
    for line in sys.stdin.buffer:
        for part in _parts(msgspec.json.decode(line)):
            _write(sys.stdout.buffer, part)


def _parts(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from crossdock.lake import diagnosis, job_history
    from crossdock.web import history_queries

    queries: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {
        "job": job_history.by_day,
        "table": history_queries.table,
        "checks": lambda data, lake: iter([{"finished": True, "warnings": diagnosis.warnings(Path(data), lake)}]),
    }
    try:
        yield from queries[request.pop("do")](**request)
    except (CrossdockError, ValueError) as error:
        yield {"error": str(error)}


def _write(out: BinaryIO, part: dict[str, Any]) -> None:
    body = msgspec.json.encode(part)
    out.write(b"%d\n" % len(body) + body)
    out.flush()


if __name__ == "__main__":
    main()
