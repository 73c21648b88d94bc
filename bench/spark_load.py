"""Measures how fast Spark enqueues a frame: to a stub that only answers, and to the real server.

python -m bench.spark_load [ROWS]
"""

import multiprocessing
import socket
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from pyspark.sql import DataFrame
from tests.support.server import Server

from crossdock.client.bulk import Loader, Where
from crossdock.pipeline.session import start
from crossdock.pipeline.source.source import register

ROUNDS = 3


def answer(tell: Connection) -> None:
    """A stub server that replies OK to each call."""
    listener = socket.create_server(("127.0.0.1", 0))
    tell.send(listener.getsockname()[1])
    while True:
        peer, _ = listener.accept()
        multiprocessing.Process(target=_serve, args=(peer,), daemon=False).start()
        peer.close()


def _serve(peer: socket.socket) -> None:
    """A call ends with its last string. The fifth `$` has the length of that string."""
    held = bytearray()
    while data := peer.recv(1 << 20):
        held += data
        while (size := _whole(held)) and len(held) >= size:
            del held[:size]
            peer.sendall(b"*5\r\n$4\r\nopen\r\n:0\r\n:0\r\n:0\r\n:0\r\n")


def _whole(held: bytearray) -> int:
    """Bytes of the first call; 0 if it is incomplete."""
    end = held.find(b"\r\n")
    if end < 0:
        return 0
    for _ in range(int(held[1:end])):
        begin, end = end + 2, held.find(b"\r\n", end + 2)
        if end < 0:
            return 0
        end += 2 + int(held[begin + 1 : end])
    return end + 2


def run(frame: DataFrame, rows: int, port: int, name: str) -> float:
    began = time.perf_counter()
    options: dict[str, str | int] = {
        "port": port,
        "kind": "k",
        "queue": "bench",
        "key": "id",
        "run": name,
        "chunk": 2_000,
    }
    frame.write.format("crossdock").options(**options).mode("append").save()
    return rows / (time.perf_counter() - began)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    spark = start("local[2]")
    register(spark)
    frame = spark.range(0, rows, 1, 4).selectExpr("id", "concat('[', id, ',\"two\"]') as args")
    hear, tell = multiprocessing.Pipe()
    toy = multiprocessing.Process(target=answer, args=(tell,), daemon=False)
    toy.start()
    port = hear.recv()
    best = max(run(frame, rows, port, f"toy-{n}") for n in range(ROUNDS))
    print(f"Spark to a server that only answers   {best:10,.0f} jobs/s")
    toy.terminate()
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder) / "data", protocols=("redis",)) as server:
        best = max(run(frame, rows, server.ports["redis"], f"real-{n}") for n in range(ROUNDS))
        with Loader(Where("127.0.0.1", server.ports["redis"]), "real-0") as load:
            assert load.loaded().total_new == rows
    print(f"Spark to the server                   {best:10,.0f} jobs/s")
    spark.stop()


if __name__ == "__main__":
    main()
