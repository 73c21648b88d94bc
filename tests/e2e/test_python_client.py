"""The Python client against a real server: threads, forks, restarts, passwords, sockets and TLS."""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crossdock.client.address import Address
from crossdock.client.aio import AsyncClient
from crossdock.client.client import Client
from crossdock.client.errors import (
    Closed,
    JobCancelled,
    JobFailed,
    NoServer,
    NotUnique,
    PayloadTooLarge,
    Refused,
    ResultTimeout,
    ServerFull,
    UnknownJob,
    Unsupported,
    WrongPassword,
)
from crossdock.client.jobs import NewJob, Schedule
from crossdock.client.transport import SocketTransport
from crossdock.server.endpoints import LISTENERS
from tests.support.certificates import Authority
from tests.support.lossy_proxy import LossyProxy
from tests.support.patience import PATIENCE_S, wait_until
from tests.support.server import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url, patience_s=PATIENCE_S, wid="worker-1") as opened:
        yield opened


def waiting(server: Server) -> int:
    with server.client() as plain:
        return plain.sizes()["enqueued"]


# A job from end to end


def test_a_job_with_a_result(client: Client) -> None:
    jid = client.push(NewJob(kind="sum", args=[1, 2], kwargs={"round": True}, tags=["math"], keep_result_s=60))
    with pytest.raises(ResultTimeout):
        client.result(jid, 0)
    (job,) = client.fetch(["default"], 10, 5, 60)
    assert (job.jid, job.kind, bytes(job.args), job.custom, job.attempt) == (
        jid,
        "sum",
        b"[1,2]",
        {"kwargs": {"round": True}},
        1,
    )
    assert (job.tags, job.keep_result, job.origin) == (("math",), True, "faktory")
    assert client.extend([jid, "unknown-1"], 120) == ["unknown-1"]
    assert client.ack([(jid, b'{"sum":3}'), ("unknown-1", None)]) == {"unknown-1": "job not found"}
    assert client.result(jid, 5) == b'{"sum":3}'
    assert client.result(jid) == b'{"sum":3}'


def test_a_result_is_awaited_by_another_thread(client: Client) -> None:
    jid = client.push(NewJob(kind="k", keep_result_s=60))
    with ThreadPoolExecutor() as pool:
        found = pool.submit(client.result, jid, PATIENCE_S)
        client.fetch(["default"], 1, 5)
        client.ack([(jid, b"[1]")])
        assert found.result(PATIENCE_S) == b"[1]"


def test_failures_snoozes_and_dead_jobs(client: Client) -> None:
    jid = client.push(NewJob(kind="k", retries=2, keep_result_s=60))
    client.fetch(["default"], 1, 5)
    assert client.fail(jid, "ValueError", "bad", ["line 1"], delay_s=0)
    (again,) = client.fetch(["default"], 1, 5)
    assert (again.attempt, again.failure is not None and again.failure.errtype) == (2, "ValueError")
    assert client.snooze(jid, 0, "not yet")
    (again,) = client.fetch(["default"], 1, 5)
    assert client.fail(jid, "Fatal", "worse", final=True)
    assert not client.fail(jid, "Fatal", "again")
    with pytest.raises(JobFailed, match="Fatal: worse"):
        client.result(jid, 5)


def test_cancel(client: Client) -> None:
    first, second = client.push_many([NewJob(kind="k", keep_result_s=60), NewJob(kind="k", keep_result_s=60)])
    (job,) = client.fetch(["default"], 1, 5)
    assert job.jid == first
    assert client.cancel(first, "no longer needed") and client.cancel(second)
    assert not client.cancel("unknown-1")
    assert client.extend([first], 60) == [first]
    with pytest.raises(JobCancelled, match="no longer needed"):
        client.result(first, 5)
    with pytest.raises(UnknownJob):
        client.result("unknown-1", 5)


def test_schedules_dependencies_and_unique_jobs(client: Client, server: Server) -> None:
    later = client.push(NewJob(kind="later", at=datetime.now(UTC) + timedelta(hours=1)))
    first = client.push(NewJob(kind="first"))
    second = client.push(NewJob(kind="second", depends_on=[first]))
    (job,) = client.fetch(["default"], 10, 5)
    assert job.jid == first
    client.ack([(first, None)])
    (job,) = client.fetch(["default"], 10, 5)
    assert job.jid == second
    assert client.cancel(later)
    client.push(NewJob(kind="once", unique_for_s=60, unique_key="user-1", args=[1]))
    with pytest.raises(NotUnique):
        client.push(NewJob(kind="once", unique_for_s=60, unique_key="user-1", args=[2]))
    client.sync_schedules("shop", [Schedule(name="nightly", cron="0 3 * * *", zone="UTC", job=NewJob(kind="sweep"))])
    client.sync_schedules("shop", [])


def test_progress_is_followed(client: Client) -> None:
    jid = client.push(NewJob(kind="k", track=True))
    seen = []
    begun = threading.Event()

    def follow() -> None:
        for progress in client.follow(jid, PATIENCE_S):
            seen.append((progress.state, progress.percent))
            begun.set()

    thread = threading.Thread(target=follow)
    thread.start()
    assert begun.wait(PATIENCE_S)
    client.fetch(["default"], 1, 5)
    client.set_progress(jid, 40, "half")
    wait_until(lambda: ("working", 40) in seen, lambda: str(seen))
    client.ack([(jid, None)])
    thread.join(PATIENCE_S)
    assert (seen[0], seen[-1]) == (("enqueued", None), ("success", 40))
    assert client.progress(jid).text == "half"


def test_batches_with_callbacks_and_children(client: Client) -> None:
    with client.batch("import", success=NewJob(kind="done", queue="callbacks")) as batch:
        batch.push(NewJob(kind="row"))
        with batch.batch("child", complete=NewJob(kind="child-done", queue="callbacks")) as child:
            child.push_many(NewJob(kind="row") for _ in range(2))
    assert (batch.status().total, child.status().parent_bid) == (1, batch.bid)
    more = client.open_batch(batch.bid)
    more.push(NewJob(kind="row"))
    jobs = client.fetch(["default"], 10, 5)
    assert Counter(job.batch for job in jobs) == {batch.bid: 2, child.bid: 2}
    client.ack([(job.jid, None) for job in jobs])
    (callback,) = client.fetch(["callbacks"], 10, 5)
    assert (callback.kind, callback.custom["_bid"]) == ("child-done", child.bid)
    client.ack([(callback.jid, None)])
    (callback,) = client.fetch(["callbacks"], 10, 5)
    assert callback.kind == "done"


def test_the_asyncio_client_has_the_same_methods(server: Server) -> None:
    async def run() -> None:
        async with AsyncClient(server.url, wid="worker-1") as client:
            jid = await client.push(NewJob(kind="k", keep_result_s=60, track=True))
            (job,) = await client.fetch(["default"], 10, 5, 60)
            result = asyncio.create_task(client.result(jid, PATIENCE_S))
            await client.set_progress(jid, 10, "begun")
            assert await client.extend([jid], 60) == []
            assert await client.beat() == ""
            assert await client.ack([(job.jid, b"7")]) == {}
            assert await result == b"7"
            assert [each.state async for each in client.follow(jid)][-1] == "success"
            async with client.batch("b", success=NewJob(kind="done", queue="callbacks")) as batch:
                await batch.push_many([NewJob(kind="row", queue="rows")] * 1)
            assert (await batch.status()).total == 1
            assert await client.cancel("unknown-1") is False
            assert (await client.info())["faktory"]["total_enqueued"] == 1
            blocked = asyncio.create_task(client.fetch(["empty"], 1, 60))
            pushed = await asyncio.gather(*(client.push(NewJob(kind="n", args=[n])) for n in range(500)))
            assert len(set(pushed)) == 500
            blocked.cancel()

    asyncio.run(run())
    assert waiting(server) == 501


def test_an_asyncio_client_may_be_used_in_one_event_loop_after_another(server: Server) -> None:
    client = AsyncClient(server.url)
    for _ in range(3):
        asyncio.run(client.push(NewJob(kind="k")))
    assert waiting(server) == 3


class PlainTransport(SocketTransport):
    """Hides the client's announcement, as if the server did not know the extensions."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        super().__init__(socket.create_connection((address.host, address.port)), timeout_s)
        self._plain_send = self.send
        self.send = self._send_renamed

    def _send_renamed(self, data: Any) -> None:
        self._plain_send(bytes(data).replace(b'"extensions":1', b'"other":1'))


def test_a_server_without_extensions(server: Server) -> None:
    with Client(server.url, connect=PlainTransport, wid="worker-1") as client:
        assert client.features().extensions == frozenset()
        first = client.push(NewJob(kind="k", track=True))
        assert client.push_many([NewJob(kind="k", queue="many")] * 2)
        (job,) = client.fetch(["default"], 10)
        assert (job.jid, job.attempt) == (first, 1)
        client.set_progress(first, 50, "half")
        assert client.progress(first).percent == 50
        assert client.beat() == ""
        assert client.ack([(first, b"1")]) == {}
        (job,) = client.fetch(["many"], order="random")
        assert client.fail(job.jid, "Error", "text")
        assert not client.fail(job.jid, "Error", "again")
        with client.batch("b", complete=NewJob(kind="done")) as batch:
            batch.push(NewJob(kind="row"))
        assert batch.status().total == 1
        with pytest.raises(Unsupported, match="needs the extension 'cancel'"):
            client.cancel(first)


# Threads and processes


def test_threads_share_a_client(client: Client, server: Server) -> None:
    def push(number: int) -> None:
        for count in range(50):
            client.push(NewJob(kind="k", args=[number, count]))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(push, range(16)))
    assert waiting(server) == 800


def test_a_fetch_that_waits_does_not_hold_up_others_and_ends_when_the_client_is_closed(server: Server) -> None:
    client = Client(server.url)
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(client.fetch, ["empty"], 1, 60)
        for _ in range(3):
            client.push(NewJob(kind="k"))
        wait_until(lambda: client._pool.in_use == 1, "the connection that waits")
        client.close()
        with pytest.raises(Closed):
            waits.result(PATIENCE_S)


_FORKS = """
import os, sys
from crossdock import Client, NewJob
client = Client(sys.argv[1])
client.push(NewJob(kind="before"))
children = []
for _ in range(4):
    pid = os.fork()
    if not pid:
        for number in range(25):
            client.push(NewJob(kind="child", args=[number]))
        os._exit(0)
    children.append(pid)
for number in range(25):
    client.push(NewJob(kind="parent", args=[number]))
sys.exit(any(os.waitpid(pid, 0)[1] for pid in children))
"""

_FORKS_ASYNC = """
import asyncio, os, sys
from crossdock import AsyncClient, NewJob
client = AsyncClient(sys.argv[1])

async def push(kind, count):
    await asyncio.gather(*(client.push(NewJob(kind=kind, args=[number])) for number in range(count)))

async def parent():
    await push("before", 1)
    pid = os.fork()
    if not pid:
        os._exit(child())
    await push("parent", 25)
    return os.waitpid(pid, 0)[1]

def child():
    import threading
    failed = []
    def run():
        try:
            asyncio.run(push("child", 25))
        except BaseException as error:
            failed.append(error)
            print(repr(error), file=sys.stderr)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return len(failed)

sys.exit(asyncio.run(parent()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(("program", "jobs"), [(_FORKS, 126), (_FORKS_ASYNC, 51)])
def test_children_after_a_fork_open_connections_of_their_own(server: Server, program: str, jobs: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program, server.url], check=False, timeout=PATIENCE_S, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert waiting(server) == jobs


# Servers that stop, are full or refuse


def more_than(pushed: list[str], count: int) -> bool:
    return len(pushed) > count


def test_pushes_go_on_after_the_server_was_killed_and_started_again(tmp_path: Path) -> None:
    with Server(tmp_path / "data", keeps_ports=True) as server, Client(server.url, patience_s=PATIENCE_S) as client:
        stop = threading.Event()
        pushed: list[str] = []

        def push() -> None:
            while not stop.is_set():
                pushed.append(client.push(NewJob(kind="k")))
                pushed.extend(client.push_many([NewJob(kind="k"), NewJob(kind="k")]))

        with ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(push) for _ in range(4)]
            for _ in range(3):
                enough = len(pushed) + 20
                wait_until(partial(more_than, pushed, enough), "some pushes")
                server.restart()
            wait_until(partial(more_than, pushed, len(pushed) + 20), "pushes after the last start")
            stop.set()
            for future in futures:
                future.result(PATIENCE_S)
        with server.client() as plain:
            left = Counter(iter(lambda: (plain.fetch() or {}).get("jid"), None))
        assert left == Counter(dict.fromkeys(pushed, 1))


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"crossdock://:s3cret@127.0.0.1:{unused.getsockname()[1]}"
        for patience_s in (0, 0.2):
            with Client(url, patience_s=patience_s) as client, pytest.raises(NoServer) as caught:
                client.push(NewJob(kind="k"))
            assert "start it with crossdock up, or correct the URL" in str(caught.value)
            assert "s3cret" not in f"{caught.value!r} {client!r}"

        async def push() -> None:
            async with AsyncClient(url, patience_s=0.2) as client:
                await client.push(NewJob(kind="k"))

        with pytest.raises(NoServer, match="start it with crossdock up"):
            asyncio.run(push())


def test_a_host_that_does_not_speak_the_protocol() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"crossdock://127.0.0.1:{listener.getsockname()[1]}"
        with Client(url, patience_s=0) as client, pytest.raises(Exception, match="unexpected reply"):
            client.push(NewJob(kind="k"))
        thread.join(PATIENCE_S)


def test_a_server_that_never_replies() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"crossdock://127.0.0.1:{listener.getsockname()[1]}"
        with (
            Client(url, patience_s=0, timeout_s=0.2) as client,
            pytest.raises(Exception, match="did not reply in time"),
        ):
            client.push(NewJob(kind="k"))

        async def push() -> None:
            async with AsyncClient(url, patience_s=0, timeout_s=0.2) as client:
                await client.push(NewJob(kind="k"))

        with pytest.raises(NoServer, match="no reply after"):
            asyncio.run(push())


def test_a_full_server_accepts_the_job_when_there_is_room(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"limits.jobs": 3}) as server, Client(server.url, patience_s=0) as client:
        client.push_many(NewJob(kind="k") for _ in range(3))
        with pytest.raises(ServerFull, match=r"raise limits\.jobs"):
            client.push(NewJob(kind="k"))
        with pytest.raises(ServerFull, match=r"raise limits\.jobs"):
            client.push_many([NewJob(kind="k")])
        with Client(server.url, patience_s=PATIENCE_S) as patient, ThreadPoolExecutor(1) as pool:
            pushes = pool.submit(patient.push, NewJob(kind="k", jid="the-patient-one"))
            (job,) = client.fetch(["default"], 1, 5)
            client.ack([(job.jid, None)])
            assert pushes.result(PATIENCE_S) == "the-patient-one"


def test_passwords(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"faktory.password": "hun ter/2"}) as server:
        here = f"127.0.0.1:{server.port}"
        with Client(f"crossdock://:hun%20ter%2F2@{here}") as client:
            client.push(NewJob(kind="k"))
        for url, text in ((f"crossdock://{here}", "requires a password"), (f"crossdock://:x@{here}", "wrong password")):
            with Client(url) as client, pytest.raises(WrongPassword, match=text):
                client.push(NewJob(kind="k"))

            async def push(url: str = url) -> None:
                async with AsyncClient(url) as client:
                    await client.push(NewJob(kind="k"))

            with pytest.raises(WrongPassword, match=text):
                asyncio.run(push())


def test_what_the_server_refuses(client: Client) -> None:
    with pytest.raises(Refused, match="queue names must match"):
        client.push(NewJob(kind="k", queue="a b"))
    with pytest.raises(Refused, match="no such batch"):
        client.batch_status("b-unknown")
    with pytest.raises(PayloadTooLarge, match=r"raise faktory\.line_mib"):
        client.push(NewJob(kind="k", args=["x" * 17_000_000]))
    client.push(NewJob(kind="k", args=["x" * 10_000_000]))


# Sockets


def test_a_unix_socket(tmp_path: Path) -> None:
    path = Path("/tmp") / f"crossdock-{os.getpid()}.sock"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")}
    listen = [part for name in LISTENERS if name != "faktory" for part in ("--listen", f"{name}=off")]
    command = [sys.executable, "-m", "crossdock", "up", "--data", str(tmp_path / "data"), *listen]
    process = subprocess.Popen(
        [*command, "--listen", f"faktory=unix:{path}"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with Client(f"crossdock+unix://{path}", patience_s=PATIENCE_S) as client:
            client.push(NewJob(kind="k"))
            (job,) = client.fetch(["default"], 1, 5)
            client.ack([(job.jid, None)])

        async def push() -> None:
            async with AsyncClient(f"crossdock+unix://{path}") as client:
                await client.push(NewJob(kind="k"))

        asyncio.run(push())
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        path.unlink(missing_ok=True)


def test_tls(server: Server, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with LossyProxy(server.address, tls=authority.sign("server").server_context()) as proxy:
        trusted = f"crossdock+tls://localhost:{proxy.port}?ca={authority.ca}"
        with Client(trusted) as client:
            client.push(NewJob(kind="k"))
            client.push_many(NewJob(kind="k", args=["x" * 1_000]) for _ in range(2_000))
            assert client.fetch(["empty"], 1, 0) == []

        async def push(url: str, context: ssl.SSLContext | None = None) -> None:
            async with AsyncClient(url, patience_s=0, context=context) as client:
                await client.push(NewJob(kind="k"))

        asyncio.run(push(trusted))
        untrusted = f"crossdock+tls://localhost:{proxy.port}"
        asyncio.run(push(untrusted, ssl.create_default_context(cafile=str(authority.ca))))
        with Client(untrusted, patience_s=0) as client, pytest.raises(NoServer, match="certificate verify failed"):
            client.push(NewJob(kind="k"))
        with pytest.raises(NoServer, match="certificate verify failed"):
            asyncio.run(push(untrusted))
        missing = Address(host="localhost", port=proxy.port, tls=True, ca=str(tmp_path / "none.pem"))
        with Client(missing, patience_s=0) as client, pytest.raises(NoServer, match=r"certificates in .*none\.pem"):
            client.push(NewJob(kind="k"))
    assert waiting(server) == 2_003


# Replies that are lost


@pytest.mark.slow
def test_each_of_10000_pushes_through_a_network_that_loses_replies_is_there_exactly_once(server: Server) -> None:
    each = 2_500

    def jobs(name: str) -> list[NewJob]:
        return [NewJob(kind=name, args=[number], jid=f"{name}-{number:05d}") for number in range(each)]

    single, many, async_single, async_many = map(jobs, ("single", "many", "async-single", "async-many"))

    async def push_all(url: str) -> None:
        async with AsyncClient(url, patience_s=PATIENCE_S) as client:
            left = iter(async_single)

            async def push() -> None:
                for job in left:
                    await client.push(job)

            await asyncio.gather(*(push() for _ in range(50)))
            for at in range(0, each, 50):
                await client.push_many(async_many[at : at + 50])

    with LossyProxy(server.address, loss=0.2, seed=7) as proxy:
        url = f"crossdock://127.0.0.1:{proxy.port}"
        with Client(url, patience_s=PATIENCE_S) as client, ThreadPoolExecutor(16) as pool:
            for pushed in pool.map(client.push, single):
                assert pushed
            list(pool.map(client.push_many, (many[at : at + 50] for at in range(0, each, 50))))
        asyncio.run(push_all(url))
        assert proxy.lost > 300
    found: Counter[str] = Counter()
    with Client(server.url) as client:
        while taken := client.fetch(["default"], 1_000):
            found.update(job.jid for job in taken)
            assert client.ack([(job.jid, None) for job in taken]) == {}
    assert found == Counter(job.jid for job in (*single, *many, *async_single, *async_many))


def test_time_passes_between_tries_and_not_more_than_the_patience_allows() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        client = Client(f"crossdock://127.0.0.1:{unused.getsockname()[1]}", patience_s=1.0)
        began = time.monotonic()
        with client, pytest.raises(NoServer, match="tried for 1 s"):
            client.push(NewJob(kind="k"))
        assert time.monotonic() - began >= 1.0
