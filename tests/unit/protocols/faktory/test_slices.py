"""Work on many jobs goes in slices. Other requests run in between and may change jobs of later slices."""

from collections.abc import Generator

import pytest

from crossdock.model.states import State
from crossdock.protocols.base import Slices
from crossdock.protocols.faktory.admin import SLICE
from crossdock.testing.connection import run_out
from tests.support.conversation import ClockedFaktory, Conversation, worker
from tests.support.dispatcher import PlainDispatcher
from tests.support.resp import body

OK = b"+OK\r\n"
JOBS = 3 * SLICE + 7


@pytest.fixture
def peer(dispatcher: PlainDispatcher) -> Conversation:
    return worker(dispatcher, ClockedFaktory(dispatcher))


def slices(peer: Conversation, line: bytes) -> Slices:
    """The work itself, so that a test can act between its steps."""
    (request,) = peer.session.receive(line + b"\r\n")
    answer = peer.session.handle(request)
    assert isinstance(answer, Generator)
    return answer


def steps(work: Slices) -> int:
    count = 1
    try:
        while True:
            next(work)
            count += 1
    except StopIteration:
        return count


def push(peer: Conversation, count: int = JOBS, more: str = "", args: str = "[]") -> None:
    jobs = ",".join(f'{{"jid":"job-{i:05d}","jobtype":"T","args":{args}{more}}}' for i in range(count))
    assert body(peer.ask(f"PUSHB [{jobs}]")) == b"{}"


LATER = ',"at":"2027-01-01T00:00:00Z"'


def test_pushb_yields(peer: Conversation) -> None:
    jobs = b",".join(b'{"jid":"job-%05d","jobtype":"T","args":[]}' % i for i in range(5 * SLICE))
    assert steps(slices(peer, b"PUSHB [%b]" % jobs)) >= 3


@pytest.mark.parametrize("what", ["clear", "discard", "kill", "requeue"])
def test_mutate_yields_and_changes_all_jobs(dispatcher: PlainDispatcher, peer: Conversation, what: str) -> None:
    push(peer, more=LATER)
    work = slices(peer, b'MUTATE {"cmd":"%b","target":"scheduled"}' % what.encode())
    assert steps(work) > JOBS // SLICE
    assert not dispatcher.state.by_state[State.SCHEDULED]
    assert len(dispatcher.state.jobs) == (JOBS if what in ("kill", "requeue") else 0)


def test_big_jobs_make_small_slices(peer: Conversation) -> None:
    push(peer, 15, more=LATER, args=f'["{"x" * 1_000_000}"]')
    assert steps(slices(peer, b'MUTATE {"cmd":"kill","target":"scheduled","filter":{"regexp":"*y*"}}')) > 5


@pytest.mark.parametrize("what", ["discard", "kill", "requeue"])
@pytest.mark.parametrize("chosen", ["jids", "jobtype"])
def test_jobs_that_changed_meanwhile_are_skipped(
    dispatcher: PlainDispatcher, peer: Conversation, what: str, chosen: str
) -> None:
    """Jobs that were listed and are gone, due or dead by now are skipped."""
    for _ in range(3):  # a slice ends between two jobs with the same jid
        push(peer, more=LATER)
    names = ",".join(f'"job-{i:05d}"' for i in range(JOBS))
    wanted = f'"jids":[{names}]' if chosen == "jids" else '"jobtype":"T"'
    work = slices(peer, f'MUTATE {{"cmd":"{what}","target":"scheduled","filter":{{{wanted}}}}}'.encode())
    next(work)
    other = worker(dispatcher, ClockedFaktory(dispatcher))
    assert other.ask('MUTATE {"cmd":"clear","target":"scheduled"}') == OK
    before = len(dispatcher.state.jobs)
    assert run_out(work) == OK
    assert len(dispatcher.state.jobs) == before


@pytest.mark.parametrize("name", ["absent-{}", "absent"])
def test_a_mutate_of_unknown_jids_yields(peer: Conversation, name: str) -> None:
    names = ",".join(f'"{name.format(i)}"' for i in range(10 * SLICE))
    work = slices(peer, f'MUTATE {{"cmd":"kill","target":"dead","filter":{{"jids":[{names}]}}}}'.encode())
    assert steps(work) > 10


def test_a_mutate_of_jobs_that_are_gone_yields(dispatcher: PlainDispatcher, peer: Conversation) -> None:
    push(peer, more=LATER)
    work = slices(peer, b'MUTATE {"cmd":"kill","target":"scheduled"}')
    next(work)
    assert worker(dispatcher, ClockedFaktory(dispatcher)).ask('MUTATE {"cmd":"clear","target":"scheduled"}') == OK
    assert steps(work) >= JOBS // SLICE


def test_a_flush_in_between(dispatcher: PlainDispatcher, peer: Conversation) -> None:
    push(peer, more=LATER)
    work = slices(peer, b'MUTATE {"cmd":"requeue","target":"scheduled"}')
    next(work)
    assert worker(dispatcher, ClockedFaktory(dispatcher)).ask("FLUSH") == OK
    assert run_out(work) == OK
    assert not dispatcher.state.jobs


def test_queue_remove_yields_and_keeps_jobs_that_arrive_meanwhile(
    dispatcher: PlainDispatcher, peer: Conversation
) -> None:
    push(peer)
    work = slices(peer, b"QUEUE REMOVE default")
    next(work)
    other = worker(dispatcher, ClockedFaktory(dispatcher))
    assert b"job-" in other.ask("FETCH default")
    assert other.ask('PUSH {"jid":"newcomer","jobtype":"T","args":[]}') == OK
    assert run_out(work) == OK
    # The job leased meanwhile and the new job still exist, so the queue is still known.
    assert sorted(job.state for job in dispatcher.state.jobs.values()) == [State.READY, State.LEASED]
    assert b'"default":1' in other.ask("INFO")
