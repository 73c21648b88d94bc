"""The requests `erase`, `export` and `compact`."""

import json
from typing import Any

from crossdock.protocols.admin.journal_requests import Exported, Purged
from crossdock.protocols.admin.session import AdminSession
from crossdock.protocols.worker_registry import WorkerRegistry
from crossdock.server.endpoints import plan_spec
from crossdock.settings.schema import Settings
from crossdock.testing.connection import run_out
from tests.support.control_peer import FixedStatus
from tests.support.conversation import ClockedFaktory, worker
from tests.support.dispatcher import PlainDispatcher


class FixedKeeper:
    def __init__(self) -> None:
        self.asked: list[int | None] = []

    def export(self) -> Exported:
        return Exported(7, 5)

    def purge(self, upto: int | None) -> Purged:
        self.asked.append(upto)
        return Purged(7, upto is not None, "")


class Erasing:
    """Three jobs of one jid's family: waiting, leased, and gone with its progress kept."""

    def __init__(self) -> None:
        self.dispatcher = PlainDispatcher()
        self.keeper = FixedKeeper()
        self.session = AdminSession(
            self.dispatcher,
            status=FixedStatus(),
            workers=WorkerRegistry(),
            plan_spec=plan_spec(Settings()),
            demand=self.dispatcher.lease_requests,
            settings_file="",
            journal=self.keeper,
        )
        faktory = worker(self.dispatcher, ClockedFaktory(self.dispatcher), "w1")
        for n in range(3):
            job = {"jid": f"anna-job-{n}", "jobtype": "mail", "queue": f"q{n}", "args": [n], "custom": {"track": 1}}
            faktory.send(b"PUSH " + json.dumps(job).encode() + b"\r\n")
        faktory.send(b"FETCH q1\r\nFETCH q2\r\n")
        faktory.send(b'ACK {"jid":"anna-job-2"}\r\n')

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        answer = self.session.handle(json.dumps({"do": do, **fields}).encode())
        found: dict[str, Any] = json.loads(answer if isinstance(answer, bytes) else run_out(answer))  # type: ignore[arg-type]
        return found

    @property
    def live(self) -> list[str]:
        return sorted(job.jid for job in self.dispatcher.state.jobs.values())


def test_a_dry_run_only_counts() -> None:
    erasing = Erasing()
    found = erasing.ask("erase", jids=["anna-job-0", "anna-job-1", "anna-job-9"], dry_run=True)
    assert [(job["jid"], job["leased"]) for job in found["jobs"]] == [("anna-job-0", False), ("anna-job-1", True)]
    assert erasing.live == ["anna-job-0", "anna-job-1"]


def test_jobs_in_every_state_are_deleted_with_their_progress() -> None:
    erasing = Erasing()
    assert "anna-job-2" in erasing.dispatcher.state.progress
    erasing.ask("erase", numbers=[1, 2])
    assert erasing.live == []
    assert set(erasing.dispatcher.state.progress) == {"anna-job-2"}
    erasing.ask("erase", forget=["anna-job-2", "never there"])
    assert not erasing.dispatcher.state.progress and not erasing.dispatcher.state.progress_ends


def test_a_jid_of_digits_is_not_a_number() -> None:
    erasing = Erasing()
    assert erasing.ask("erase", jids=["1"])["jobs"] == []
    assert erasing.live == ["anna-job-0", "anna-job-1"]


def test_forgetting_leaves_jobs_alone() -> None:
    erasing = Erasing()
    erasing.ask("erase", forget=["anna-job-0"])
    assert erasing.live == ["anna-job-0", "anna-job-1"]


def test_export_and_compact_are_answered_by_the_server() -> None:
    erasing = Erasing()
    assert erasing.ask("export") == {"last": 7, "exported": 5}
    assert erasing.ask("compact") == {"upto": 7, "done": False, "waits_for": ""}
    assert erasing.ask("compact", upto=7)["done"] is True
    assert erasing.keeper.asked == [None, 7]
