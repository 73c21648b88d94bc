"""Requests about measurements: metrics, rates, protocols, settings, and the figures of queues."""

import msgspec
import pytest

from tests.support.control_peer import HISTORY, SETTING, TRAFFIC, ControlPeer
from tests.support.conversation import ClockedFaktory, Conversation
from tests.support.dispatcher import PlainDispatcher
from tests.support.five_jobs import STATES, five_jobs, push


@pytest.fixture
def peer(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> ControlPeer:
    return ControlPeer(dispatcher, protocol.workers)


def test_metrics_hold_the_tracked_queues_and_all_others_together(client: Conversation, peer: ControlPeer) -> None:
    five_jobs(client)
    found = peer.ask("metrics")["metrics"]
    assert [queue["queue"] for queue in found["queues"]] == ["mail", "video"]
    assert found["other"]["queue"] == "_other"
    assert {state: count for state, count in found["states"].items() if count} == {
        state: list(STATES.values()).count(state) for state in STATES.values()
    }
    assert found["server"]["version"] == "1.2.3"


def test_rates_of_a_queue_that_is_not_tracked_are_null(peer: ControlPeer) -> None:
    assert peer.ask("rates")["rates"] == msgspec.to_builtins(HISTORY)
    assert peer.ask("rates", queue="mail")["rates"] == msgspec.to_builtins(HISTORY)
    assert peer.ask("rates", queue="other")["rates"] is None


def test_protocols_settings_and_warnings_are_listed(peer: ControlPeer) -> None:
    assert peer.ask("protocols")["protocols"] == [msgspec.to_builtins(TRAFFIC)]
    assert peer.ask("settings")["settings"] == [msgspec.to_builtins(SETTING)]
    assert peer.ask("warnings")["warnings"] == ["the disk is small"]


def test_a_queue_shows_its_rates_and_times(client: Conversation, peer: ControlPeer) -> None:
    five_jobs(client)
    push(client, "job-00010", "default")
    rates = {row["queue"]: row["rates"] for row in peer.all("queues")}
    assert rates["mail"] == {"pushed": 0.1, "leased": 0.2, "processed": 0.3, "failed": 0.4}
    assert rates["default"] is None
    mail = peer.ask("queue", name="mail")["queue"]
    assert mail["wait"] == {"p50_s": 1.0, "p95_s": 2.0, "p99_s": 3.0, "count": 4}
    assert mail["run"] == {"p50_s": None, "p95_s": None, "p99_s": None, "count": 0}
