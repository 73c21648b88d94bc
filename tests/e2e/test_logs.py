"""The log of a running server: its events and their fields, without secrets."""

import json
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from crossdock.client.admin import AdminClient
from crossdock.client.errors import Refused
from crossdock.client.qless import QlessClient
from crossdock.client.workq import WorkqClient
from crossdock.logs import EVENTS_A_SECOND
from tests.support.faktory_client import Client
from tests.support.faktory_client import Refused as FaktoryRefused
from tests.support.patience import PATIENCE_S, wait_until
from tests.support.server import Server

SECRET = "correct-horse-battery"
PAYLOAD = "payload-of-a-job"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    settings = {
        "server.log_format": "json",
        "server.log": "debug",
        "faktory.password": SECRET,
        "redis.password": SECRET,
    }
    with Server(tmp_path / "data", settings, protocols=("faktory", "redis", "workq", "http")) as running:
        yield running


def events(server: Server, name: str) -> list[dict[str, Any]]:
    return [read for line in server.log().splitlines() if (read := json.loads(line))["event"] == name]


def awaited(server: Server, name: str, count: int = 1) -> list[dict[str, Any]]:
    wait_until(lambda: len(events(server, name)) >= count, lambda: f"{count} {name} in {server.log()}")
    return events(server, name)


def test_start_and_stop_are_logged_with_listeners_and_settings(server: Server) -> None:
    (start,) = events(server, "server-started")
    assert start["pid"] == server.process.pid
    listening = {each["protocol"]: each["address"] for each in events(server, "listening")}
    assert listening == {name: f"127.0.0.1:{port}" for name, port in server.ports.items()}
    values = {each["setting"]: each["value"] for each in events(server, "setting")}
    assert values["server.log_format"] == "json"
    assert values["faktory.password"] == values["redis.password"] == "set"
    assert "masenko.heartbeat" not in values
    server.signal(signal.SIGTERM)
    server.wait()
    assert [each["reason"] for each in events(server, "server-stopping")] == ["SIGTERM"]
    assert events(server, "server-stopped")


def wrong_faktory(server: Server) -> None:
    with suppress(FaktoryRefused):
        Client(server.address, password="wrong").close()


def wrong_redis(server: Server) -> None:
    with suppress(Refused):
        QlessClient("127.0.0.1", server.ports["redis"], password="wrong").close()


@pytest.mark.parametrize(("protocol", "connect"), [("faktory", wrong_faktory), ("redis", wrong_redis)])
def test_wrong_passwords_are_logged_and_limited(
    server: Server, protocol: str, connect: Callable[[Server], None]
) -> None:
    connect(server)
    (first, *_) = awaited(server, "wrong-password")
    assert (first["level"], first["protocol"]) == ("warning", protocol)
    assert first["peer"].startswith("127.0.0.1:") and first["connection"] > 0
    attempts = 1
    while not any("not logged" in each["msg"] for each in events(server, "wrong-password")):
        for _ in range(2 * EVENTS_A_SECOND):
            connect(server)
        attempts += 2 * EVENTS_A_SECOND
    assert len(events(server, "wrong-password")) < attempts


def test_input_that_is_not_the_protocol_is_logged(server: Server) -> None:
    for name, hostile in (
        ("faktory", b"GET / HTTP/1.1\r\n\r\n"),
        ("redis", b"*1\r\n$x\r\n"),
        ("workq", b"f\x1boo\r\n"),
    ):
        with socket.create_connection(("127.0.0.1", server.ports[name]), PATIENCE_S) as peer:
            peer.sendall(hostile)
            peer.recv(1)
            wait_until(
                lambda name=name: name in [each["protocol"] for each in events(server, "protocol-error")],  # type: ignore[misc]
                f"the error of {name}",
            )


def test_a_job_that_dies_is_logged_with_its_worker(server: Server) -> None:
    with server.client(wid="worker-1") as client:
        client.push("job-0001", "mail", [PAYLOAD], retry=-1)
        client.fetch("mail")
        client.fail("job-0001", PAYLOAD)
    (died,) = awaited(server, "job-died")
    fields = {name: died[name] for name in ("job", "queue", "worker", "protocol", "state", "attempt")}
    assert fields == {
        "job": "job-0001",
        "queue": "mail",
        "worker": "worker-1",
        "protocol": "faktory",
        "state": "dead",
        "attempt": 1,
    }
    assert PAYLOAD not in server.log()


def test_a_lease_that_expires_is_logged(server: Server) -> None:
    ident = "61a444a0-6128-41c0-8078-cc757d3bd2d8"
    with WorkqClient("127.0.0.1", server.ports["workq"]) as client:
        client.add(ident, "resize", b"x", ttr_ms=1, ttl_ms=60_000)
        assert client.take(["resize"], PATIENCE_S) is not None
        (expired, *_) = awaited(server, "lease-expired")
    assert (expired["job"], expired["queue"], expired["protocol"]) == (ident, "resize", "workq")


def test_an_action_of_an_operator_is_logged_with_the_user(server: Server) -> None:
    with server.client() as client:
        client.push("job-0001", "mail")
    with AdminClient(server.data) as admin:
        admin.ask("pause", names=["mail"], by={"user": "ada", "address": "192.0.2.7"})
    (action,) = awaited(server, "operator-action")
    shown = {name: action[name] for name in ("user", "address", "action", "count")}
    assert shown == {"user": "ada", "address": "192.0.2.7", "action": "pause", "count": 1}


def test_debug_shows_the_commands_without_their_arguments(server: Server) -> None:
    with server.client() as client:
        client.push("job-0001", args=[PAYLOAD])
    with QlessClient("127.0.0.1", server.ports["redis"], password=SECRET) as qless:
        qless.put("mail", "job-0002", "Mail", b"{}")
    shown = [(each["protocol"], each["command"]) for each in awaited(server, "command", 4)]
    for command in (("faktory", "HELLO"), ("faktory", "PUSH"), ("redis", "AUTH"), ("redis", "FCALL put")):
        assert command in shown
    assert SECRET not in server.log() and PAYLOAD not in server.log()


def test_every_line_of_every_process_is_an_event(server: Server) -> None:
    """The web process ends when its server is stopped; all that both have written is read."""
    with socket.create_connection(("127.0.0.1", server.ports["http"]), PATIENCE_S) as browser:
        browser.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert browser.recv(64).startswith(b"HTTP/1.1 ")
    lines = [json.loads(line) for line in server.log().splitlines()]
    assert all({"ts", "level", "event", "msg"} <= line.keys() for line in lines)
    assert "web.process" in [line.get("process") for line in lines], "uvicorn's lines at debug"
