"""SIGHUP and `crossdock reload`: what they change in a running server, and what they refuse."""

import getpass
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.client.admin import AdminClient
from crossdock.client.client import Client
from crossdock.client.errors import Refused
from crossdock.client.jobs import NewJob
from tests.support.command_line import Operator
from tests.support.patience import PATIENCE_S, wait_until
from tests.support.server import Server


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "crossdock.toml"
    file.write_text('[server]\nlog = "info"\n', "utf-8")
    return file


@pytest.fixture
def server(tmp_path: Path, config: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", config=config) as running:
        yield running


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path, server_data="data")


def schedules(server: Server) -> list[str]:
    with AdminClient(server.data) as admin:
        return [each["name"] for each in admin.ask("schedules")["schedules"]]


def test_reload_applies_cron_throttles_passwords_and_the_log(server: Server, config: Path, operator: Operator) -> None:
    open_before = server.client()
    config.write_text(
        '[server]\nlog = "debug"\nlog_format = "json"\n'
        '[faktory]\npassword = "new"\n'
        "[throttles]\nmail = { concurrency = 1 }\n"
        '[[cron]]\nname = "nightly"\nschedule = "0 3 * * *"\njob = { type = "Sweep" }\n',
        "utf-8",
    )
    done = operator.json("reload")["reload"]
    assert done == {
        "changed": ["server.log", "server.log_format", "faktory.password", "cron", "throttles"],
        "restart": [],
    }
    assert schedules(server) == ["nightly"]
    with open_before as client:  # connections that are open stay open
        client.push("job-0001", "mail")
        client.push("job-0002", "mail")
        assert client.fetch("mail") is not None
        assert client.fetch("mail") is None, "the throttle lets one job run"
    with pytest.raises(Refused, match="requires a password"):
        Client(server.url).push(NewJob(kind="T"))
    with Client(server.url.replace("//", "//:new@")) as client:
        client.push(NewJob(kind="T"))
    assert '"event": "command"' in server.log(), "the level is debug, also for the connection that was open"


def test_reload_applies_rate_limits(server: Server, config: Path, operator: Operator) -> None:
    config.write_text('[rate.mail]\nqueue = "mail"\nrate = "1/d"\n', "utf-8")
    assert operator.json("reload")["reload"] == {"changed": ["rate"], "restart": []}
    with server.client() as client:
        client.push("job-0001", "mail")
        client.push("job-0002", "mail")
        assert client.fetch("mail") is not None
        assert client.fetch("mail") is None, "one job a day"
        config.write_text("", "utf-8")
        assert operator.json("reload")["reload"] == {"changed": ["rate"], "restart": []}
        assert client.fetch("mail") is not None


def test_sighup_reloads_and_says_what_needs_a_restart(server: Server, config: Path) -> None:
    config.write_text('[listen]\nredis = "127.0.0.1:1"\n[limits]\njobs = 7\n[server]\nlog = "warning"\n', "utf-8")
    server.signal(signal.SIGHUP)
    text = "the settings were reloaded: changed server.log; a restart is needed for limits.jobs"
    wait_until(lambda: text in server.log(), server.log)


def test_an_invalid_file_changes_nothing(server: Server, config: Path, operator: Operator) -> None:
    config.write_text(
        '[faktory]\npassword = "new"\n[[cron]]\nname = "x"\nschedule = "every day"\njob = { type = "T" }\n', "utf-8"
    )
    ended = operator.run("reload")
    assert ended.code == 1
    assert ended.err.startswith('crossdock: nothing was changed: cron "x": schedule "every day"')
    wait_until(lambda: "event=reload-failed" in server.log(), server.log)
    assert schedules(server) == []
    with Client(server.url) as client:
        client.push(NewJob(kind="T"))


def test_a_reload_without_changes_says_so_and_is_not_audited(server: Server, operator: Operator) -> None:
    assert operator.output("reload") == "no setting was changed\n"
    assert operator.json("audit", "list") == {"audit": []}


def test_a_reload_is_in_the_audit_trail_with_the_names_of_the_settings(
    server: Server, config: Path, operator: Operator
) -> None:
    config.write_text('[server]\nlog = "debug"\n[faktory]\npassword = "new"\n[limits]\njobs = 7\n', "utf-8")
    operator.output("reload")
    (row,) = operator.json("audit", "list")["audit"]
    assert (row["user"], row["address"], row["action"]) == (getpass.getuser(), "local", "reload")
    assert (row["target"], row["count"]) == ("settings:server.log,faktory.password", 2)


def test_sighup_is_in_the_audit_trail(server: Server, config: Path, operator: Operator) -> None:
    config.write_text('[server]\nlog = "debug"\n[limits]\njobs = 7\n', "utf-8")
    server.signal(signal.SIGHUP)
    wait_until(lambda: len(operator.json("audit", "list")["audit"]) == 1, server.log)
    (row,) = operator.json("audit", "list")["audit"]
    assert (row["user"], row["address"], row["via"], row["action"]) == ("SIGHUP", "local", "signal", "reload")
    assert (row["target"], row["count"]) == ("settings:server.log", 1)
    server.signal(signal.SIGHUP)
    wait_until(lambda: "no setting was changed" in server.log(), server.log)
    assert len(operator.json("audit", "list")["audit"]) == 1, "nothing was changed"


def test_reload_restarts_the_web_process_for_a_new_password(tmp_path: Path, config: Path) -> None:
    with Server(tmp_path / "data", {"lake.on": "false"}, protocols=("faktory", "http"), config=config) as server:
        with socket.create_connection(("127.0.0.1", server.ports["http"]), PATIENCE_S) as browser:
            browser.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert browser.recv(64), "the web process answers"
        (before,) = server.children()
        config.write_text('[server]\nlog = "info"\n[http]\npassword = "new"\n', "utf-8")
        server.signal(signal.SIGHUP)
        wait_until(lambda: "event=web-restarted" in server.log(), server.log)
        wait_until(lambda: server.children() not in ([], [before]), "the next web process")
        assert "event=web-ended" not in server.log()
