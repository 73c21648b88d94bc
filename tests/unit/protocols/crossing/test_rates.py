"""Rate limits across protocols: a limit counts the leases of all of them, and waiting requests are woken by a timer."""

import pytest

from crossdock.model.commands import resqu as r
from crossdock.model.commands.core import SetRates
from crossdock.model.events import Leased
from crossdock.model.records import FROM_SETTINGS, RateScope, RateSpec
from crossdock.model.states import State
from tests.model import invariants
from tests.model.resqu_bench import job_spec
from tests.support.all_protocols import AllProtocols
from tests.support.peer import Peer

PROTOCOLS = ("faktory", "workq", "masenko", "qless", "resqu")
WAITING = tuple(name for name in PROTOCOLS if name != "qless")  #: qless has no request that waits

KIND, QUEUE = RateScope.KIND, RateScope.QUEUE


def limit(all_protocols: AllProtocols, scope: RateScope, target: str, count: int, per_s: float) -> None:
    all_protocols.dispatcher.do(SetRates(FROM_SETTINGS, [RateSpec("limit", scope, target, count, per_s)]))


def peer(all_protocols: AllProtocols, protocol: str) -> Peer:
    built: dict[str, Peer] = {"resqu": all_protocols.resqu()} if protocol == "resqu" else {}
    return built.get(protocol) or all_protocols.peer(protocol, "w1" if protocol in ("faktory", "qless") else "")


def taken(worker: Peer, *queues: str) -> str | None:
    got = worker.fetch(*queues)
    return None if got is None else got.text


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_queue_whose_rate_is_used_up_looks_empty_to_every_protocol(
    all_protocols: AllProtocols, protocol: str
) -> None:
    limit(all_protocols, QUEUE, "q", 2, 20.0)
    worker = peer(all_protocols, protocol)
    producer = all_protocols.faktory()
    for text in ("a", "b", "c"):
        producer.push("q", text)
    assert (taken(worker, "q"), taken(peer(all_protocols, protocol), "q")) == ("a", "b")
    worker = peer(all_protocols, protocol)  # a Resqu worker has one job at a time
    assert taken(worker, "q") is None
    assert producer.look("q") == 1, "the job is still in the queue"
    all_protocols.dispatcher.advance(10.0)
    assert taken(worker, "q") == "c"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_limited_kind_does_not_block_the_others(all_protocols: AllProtocols, protocol: str) -> None:
    limit(all_protocols, KIND, "slow", 1, 20.0)
    worker = peer(all_protocols, protocol)
    producer = all_protocols.faktory()
    for text in ("a", "b", "c"):
        producer.push("q", text, jobtype="slow")
    producer.push("q", "x")
    assert (taken(worker, "q"), taken(peer(all_protocols, protocol), "q")) == ("a", "x")
    worker = peer(all_protocols, protocol)
    assert taken(worker, "q") is None
    invariants.check(all_protocols.dispatcher.state)
    all_protocols.dispatcher.advance(20.0)
    assert taken(worker, "q") == "b"
    worker = peer(all_protocols, protocol)
    assert taken(worker, "q") is None
    all_protocols.dispatcher.advance(20.0)
    assert taken(worker, "q") == "c"


@pytest.mark.parametrize("scope", [KIND, QUEUE])
@pytest.mark.parametrize("protocol", WAITING)
def test_a_waiting_request_is_woken_when_a_token_is_there(
    all_protocols: AllProtocols, protocol: str, scope: RateScope
) -> None:
    limit(all_protocols, scope, "F" if scope is KIND else "q", 1, 1.5)
    worker, other = peer(all_protocols, protocol), all_protocols.faktory("other")
    producer = all_protocols.faktory()
    producer.push("q", "a")
    producer.push("q", "b")
    assert taken(other, "q") == "a"
    worker.ask("q", wait_s=60.0)
    got = worker.given()
    assert got is not None
    assert got.text == "b"
    first, second = (event.began for event in all_protocols.dispatcher.events if isinstance(event, Leased))
    assert second - first == pytest.approx(1.5), "not at the end of the wait"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_restart_keeps_what_was_used(all_protocols: AllProtocols, protocol: str) -> None:
    limit(all_protocols, KIND, "F", 1, 20.0)
    producer = all_protocols.faktory()
    producer.push("q", "a")
    producer.push("q", "b")
    assert taken(peer(all_protocols, protocol), "q") == "a"
    again = all_protocols.restarted()
    worker = peer(again, "faktory")
    first = taken(worker, "q")
    assert first is None, "also if the lease ended with its connection"
    again.dispatcher.advance(20.0)
    assert taken(worker, "q") in ("a", "b")
    assert taken(worker, "q") is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_job_of_any_protocol_can_be_held(all_protocols: AllProtocols, protocol: str) -> None:
    producer = peer(all_protocols, protocol)
    producer.push("q", "a")
    producer.push("q", "b")
    state = all_protocols.dispatcher.state
    kind = next(iter(state.jobs.values())).kind
    limit(all_protocols, KIND, kind, 1, 20.0)
    worker = all_protocols.faktory("w")
    first = taken(worker, "q")  # qless orders jobs of the same time by their jids
    assert taken(worker, "q") is None
    assert {job.state for job in state.jobs.values()} == {State.LEASED, State.HELD}
    invariants.check(state)
    all_protocols.dispatcher.advance(20.0)
    assert {first, taken(worker, "q")} == {"a", "b"}


def test_workq_settles_a_held_job(all_protocols: AllProtocols) -> None:
    """Workq may settle its jobs in any live state."""
    workq = all_protocols.workq()
    one, other = workq.push("q", "a"), workq.push("q", "b")
    limit(all_protocols, KIND, "q", 1, 20.0)
    assert taken(workq, "q") == "a"
    assert taken(workq, "q") is None
    assert workq.succeed(other)
    invariants.check(all_protocols.dispatcher.state)
    assert workq.succeed(one)
    assert not all_protocols.dispatcher.state.rate_index.waits


def test_qless_shows_a_held_job_as_throttled(all_protocols: AllProtocols) -> None:
    qless = all_protocols.qless()
    qless.push("q", "a", ident="first")
    qless.push("q", "b", ident="second")
    limit(all_protocols, KIND, "Q", 1, 20.0)
    names = {taken(qless, "q"), taken(qless, "q")}
    assert None in names
    assert '"throttled"' in qless.call("get", "first") + qless.call("get", "second")
    all_protocols.dispatcher.advance(20.0)
    assert '"throttled"' not in qless.call("get", "first") + qless.call("get", "second")
    assert taken(qless, "q") is not None


def test_an_expired_qless_lease_waits_for_a_token(all_protocols: AllProtocols) -> None:
    """The next pop takes an expired job away from its holder, and it counts as a lease."""
    qless, other = all_protocols.qless(), all_protocols.qless()
    qless.push("q", "a")
    limit(all_protocols, KIND, "Q", 1, 1_000.0)
    assert taken(qless, "q") == "a"
    all_protocols.dispatcher.advance(70.0)
    assert taken(other, "q") is None, "a warning"
    all_protocols.dispatcher.advance(20.0)
    assert taken(other, "q") is None
    invariants.check(all_protocols.dispatcher.state)
    all_protocols.dispatcher.advance(1_000.0)
    assert taken(other, "q") == "a"


def test_a_batch_waits_for_its_next_job_and_other_jobs_pass(all_protocols: AllProtocols) -> None:
    """A Resqu batch is worked in order, so its jobs keep their places."""
    dispatcher = all_protocols.dispatcher
    dispatcher.do(r.SetMapping({"default": {"default": "static"}}, {"default": {"default": "q"}}))
    dispatcher.do(r.OpenResquBatch("resqu", "b", "s", "Import", job_spec("b-0", source="s", name="Import")))
    for index in (1, 2):
        dispatcher.do(r.PushToResquBatch("resqu", "b", job_spec(f"b-{index}", source="s", name="Import")))
    dispatcher.do(r.CommitResquBatch("b"))
    kind = next(dispatcher.state.named("b-0")).kind
    limit(all_protocols, KIND, kind, 1, 1.5)
    all_protocols.faktory().push("q", "x", ident="other-job")
    worker = all_protocols.faktory("w")
    waiting = all_protocols.faktory("v")
    first = [worker.fetch("q"), worker.fetch("q")]
    assert {got.ident for got in first if got is not None} == {"b-0", "other-job"}
    waiting.ask("q")
    got = waiting.given()
    assert got is not None
    assert got.ident == "b-1"
    invariants.check(dispatcher.state)
    began = {event.jid: event.began for event in dispatcher.events if isinstance(event, Leased)}
    assert began["b-1"] - began["b-0"] == pytest.approx(1.5), "a timer woke it"
