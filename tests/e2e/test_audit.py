"""The audit trail of a real server: after a kill, and on the command line."""

import getpass
from pathlib import Path

from crossdock.client.admin import AdminClient
from tests.support.command_line import Operator
from tests.support.server import Server


def test_an_action_is_in_the_trail_after_a_kill(tmp_path: Path) -> None:
    operator = Operator(tmp_path, server_data="data")
    with Server(tmp_path / "data") as server:
        with server.client() as client:
            client.push("a-job-01", "mail")
        assert operator.output("queue", "pause", "mail", "--reason", "the mail server is down") == "paused 1 queue\n"
        with AdminClient(server.data) as admin:
            admin.ask("delete", ids=["a-job-01"], by={"user": "ben", "address": "192.0.2.7"})
            before = admin.ask("audit")
            server.kill()
        server.start()
        assert operator.json("audit", "list") == {"audit": before["audit"]}
        shown = operator.output("audit", "list").splitlines()
        user = getpass.getuser()
        assert shown[0].split() == ["AT", "USER", "ADDRESS", "ACTION", "COUNT", "TARGET"]
        assert shown[1].split()[1:] == ["ben", "192.0.2.7", "delete", "1", "jobs:1"]
        assert shown[2].split(maxsplit=5)[1:] == [
            user, "local", "pause", "1", 'names:mail reason:"the mail server is down"',
        ]  # fmt: skip
        assert len(operator.output("audit", "list", "--limit", "1").splitlines()) == 2
        assert operator.output("queue", "list").splitlines()[1].endswith("paused: the mail server is down")
        since = before["audit"][1]["at"]
        assert f"paused      since {since} by {user}: the mail server is down\n" in operator.output(
            "queue", "show", "mail"
        )
