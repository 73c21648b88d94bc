"""The examples of docs/how-to/python.md, run as one program against a real server and a worker."""

import subprocess
import sys
import threading
from pathlib import Path

import msgspec

from crossdock.client.client import Client
from crossdock.client.jobs import FetchedJob
from tests.support.doc_pages import blocks
from tests.support.patience import PATIENCE_S
from tests.support.server import Server


def work(client: Client, job: FetchedJob) -> None:
    if job.kind == "encode":
        client.set_progress(job.jid, 50, "half")
    result = b"%d" % sum(msgspec.json.decode(job.args)) if job.kind == "sum" else None
    assert client.ack([(job.jid, result)]) == {}


def test_the_examples_for_python_work(tmp_path: Path) -> None:
    stop = threading.Event()
    done: list[str] = []

    def worker(url: str) -> None:
        with Client(url, wid="docs") as client:
            while not stop.is_set():
                for job in client.fetch(["sums", "video", "imports", "mail"], 10, 0.1):
                    work(client, job)
                    done.append(job.kind)

    with Server(tmp_path / "data") as server:
        program = tmp_path / "program.py"
        text = "\n".join(blocks("docs/how-to/python.md", "python"))
        program.write_text(text.replace("localhost:7419", f"127.0.0.1:{server.port}"), "utf-8")
        thread = threading.Thread(target=worker, args=(server.url,))
        thread.start()
        try:
            ended = subprocess.run(
                [sys.executable, "-W", "error", str(program)],
                check=False, timeout=PATIENCE_S, capture_output=True, text=True,
            )  # fmt: skip
        finally:
            stop.set()
            thread.join(PATIENCE_S)
        assert ended.stderr == ""
        jid, cancelled, result, *progress, total, unique, pushed = ended.stdout.splitlines()
        assert (len(jid), cancelled, result, total, unique, pushed) == (
            24, "True", "b'3'", "2", "the report is on its way", "100"
        )  # fmt: skip
        assert progress[-1].startswith("success ")
        with server.client() as plain:
            assert plain.info()["faktory"]["queues"]["images"] == 10_000
