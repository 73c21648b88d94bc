"""Jobs that are pushed through one protocol and processed through another (model.md sections 2, 6 and 9)."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.commands.qless import SetPriority
from crossdock.model.events import Failed, Renewed, Succeeded
from crossdock.model.job import Form, Spec
from crossdock.model.policies import LeaseExpiry
from crossdock.model.states import State
from crossdock.protocols.masenko.protocol import MasenkoProtocol
from crossdock.protocols.redis.keys.values import KIND_BYTES
from crossdock.protocols.redis.qless.arguments import QlessError
from crossdock.protocols.redis.qless.call import PHP, REQLESS, REQLESS_013, THROTTLES, UNIFIED, UNIFIED_2013
from tests.model import invariants
from tests.model.bench import RULES, TERMS
from tests.qless.replay import Line, QlessDispatcher
from tests.support.control_peer import ControlPeer
from tests.support.conversation import ClockedFaktory, Conversation, worker
from tests.support.masenko_peer import MasenkoPeer
from tests.support.picture import picture
from tests.support.recovered_state import from_snapshot, replayed


@pytest.fixture
def dispatcher() -> QlessDispatcher:
    return QlessDispatcher()


@pytest.fixture
def faktory(dispatcher: QlessDispatcher) -> Conversation:
    return worker(dispatcher, ClockedFaktory(dispatcher), "wid")


def t(dispatcher: QlessDispatcher, later: float = 0.0) -> str:
    return repr(dispatcher.now.wall + later)


def put(
    dispatcher: QlessDispatcher, jid: str, *more: str, queue: str = "q", delay: str = "0", data: str = "{}"
) -> None:
    assert dispatcher.call("put", t(dispatcher), "w", queue, jid, "klass", data, delay, *more) == jid


def get(dispatcher: QlessDispatcher, jid: str) -> Any:
    found = dispatcher.call("get", t(dispatcher), jid)
    return None if found is None else json.loads(found)


def pop(
    dispatcher: QlessDispatcher, *, later: float = 0.0, name: str = "w", queue: str = "q", count: str = "1"
) -> list[Any]:
    return list(json.loads(dispatcher.call("pop", t(dispatcher, later), queue, name, count)))


def fetched(faktory: Conversation, queue: str = "q") -> Any:
    said = faktory.ask(f"FETCH {queue}")
    return json.loads(said.split(b"\r\n")[1]) if said.startswith(b"$") and not said.startswith(b"$-1") else None


def test_a_faktory_job_is_popped_tagged_followed_and_completed(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    faktory.ask('PUSH {"jid":"12345678","jobtype":"mail","queue":"q","args":[1,"a"]}')
    [job] = pop(dispatcher)
    assert (job["jid"], job["klass"], job["state"], job["worker"]) == ("12345678", "mail", "running", "w")
    assert json.loads(job["data"]) == [1, "a"]
    assert [each["what"] for each in job["history"]] == ["put", "popped"]
    assert dispatcher.call("tag", t(dispatcher), "add", "12345678", "red") == '["red"]'
    assert dispatcher.call("track", t(dispatcher), "track", "12345678") == "1"
    assert dispatcher.call("heartbeat", t(dispatcher, 5), "12345678", "w") == int(dispatcher.now.wall) + 65
    dispatcher.published.clear()
    assert dispatcher.call("complete", t(dispatcher, 7), "12345678", "w", "q", "{}") == "complete"
    assert dispatcher.published == [
        ["ql:completed", "12345678"],
        ["ql:log", '{"jid":"12345678","event":"completed","queue":"q"}'],
    ]
    assert get(dispatcher, "12345678") is None, "by its own policy it is removed"
    assert json.loads(dispatcher.call("tag", t(dispatcher), "get", "red")) == {"jobs": {}, "total": 0}


def test_a_foreign_job_that_advances_becomes_a_qless_job_with_its_history_and_retries(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    faktory.ask('PUSH {"jid":"12345678","jobtype":"mail","queue":"q","args":[1],"retry":1}')
    pop(dispatcher)
    assert dispatcher.call("complete", t(dispatcher), "12345678", "w", "q", '{"a":1}', "next", "q2") == "waiting"
    [job] = pop(dispatcher, queue="q2")
    assert [(each["what"], each.get("q", "")) for each in job["history"]] == [
        ("put", "q"),
        ("popped", ""),
        ("done", ""),
        ("put", "q2"),
        ("popped", ""),
    ]
    assert (job["retries"], job["remaining"], job["expires"]) == (1, 1, float(t(dispatcher, 60)))
    assert dispatcher.call("retry", t(dispatcher), "12345678", "q2", "w") == 0
    assert get(dispatcher, "12345678")["state"] == "waiting"
    pop(dispatcher, queue="q2")
    assert dispatcher.call("retry", t(dispatcher), "12345678", "q2", "w") == -1
    assert get(dispatcher, "12345678")["state"] == "failed"
    assert json.loads(dispatcher.call("failed", t(dispatcher))) == {"failed-retries-q2": 1}
    invariants.check(dispatcher.state)


def test_a_foreign_job_that_advanced_is_retained_when_it_completes(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    faktory.ask('PUSH {"jid":"12345678","jobtype":"mail","queue":"q","args":[1]}')
    pop(dispatcher)
    dispatcher.call("complete", t(dispatcher), "12345678", "w", "q", "{}", "next", "q2")
    assert fetched(faktory, "q2")["jid"] == "12345678"
    faktory.ask('ACK {"jid":"12345678"}')
    assert get(dispatcher, "12345678")["state"] == "complete"
    assert dispatcher.call("jobs", t(dispatcher), "complete") == ["12345678"]
    invariants.check(dispatcher.state)


def test_a_raw_payload_that_advances_becomes_the_data_that_the_worker_sent(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    dispatcher.do(c.Enqueue("workq", [Spec("12345678", "q", "kind", b"raw", Form.RAW, 0, RULES)]))
    [job] = pop(dispatcher)
    assert json.loads(job["data"]) == {"payload": "raw"}
    dispatcher.call("complete", t(dispatcher), "12345678", "w", "q", '{"payload":"raw","step":2}', "next", "q2")
    assert fetched(faktory, "q2")["args"] == [{"payload": "raw", "step": 2}]


def test_a_job_whose_expired_leases_are_free_advances_with_the_default_retries(dispatcher: QlessDispatcher) -> None:
    its_rules = replace(RULES, max_failures=0, lease_expiry=LeaseExpiry.RETURN)
    dispatcher.do(c.Enqueue("workq", [Spec("12345678", "q", "kind", b"raw", Form.RAW, 0, its_rules)]))
    pop(dispatcher)
    dispatcher.call("complete", t(dispatcher), "12345678", "w", "q", "{}", "next", "q2")
    assert get(dispatcher, "12345678")["remaining"] == 5


def test_a_put_over_a_foreign_job_keeps_its_history(dispatcher: QlessDispatcher, faktory: Conversation) -> None:
    faktory.ask('PUSH {"jid":"12345678","jobtype":"mail","queue":"q","args":[1]}')
    pop(dispatcher)
    put(dispatcher, "12345678", queue="q2")
    shown = [(each["what"], each.get("q", "")) for each in get(dispatcher, "12345678")["history"]]
    assert shown == [("put", "q"), ("popped", ""), ("put", "q2")]


def test_a_delayed_retry_of_a_foreign_job_is_listed_where_it_is_counted(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    for jid in ("12345678", "23456789"):
        faktory.ask(f'PUSH {{"jid":"{jid}","jobtype":"mail","queue":"q","args":[]}}')
    pop(dispatcher)
    assert dispatcher.call("retry", t(dispatcher), "12345678", "q", "w", "30") == 24
    put(dispatcher, "own", delay="60")
    assert json.loads(dispatcher.call("queues", t(dispatcher), "q"))["scheduled"] == 2
    assert dispatcher.call("jobs", t(dispatcher), "scheduled", "q") == ["own", "12345678"]
    assert dispatcher.call("jobs", t(dispatcher), "scheduled", "q", "-1") == ["12345678"]
    assert dispatcher.call("jobs", t(dispatcher), "scheduled", "p") == []


def test_the_failure_of_a_foreign_job_follows_its_own_policy(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    faktory.ask('PUSH {"jid":"12345678","jobtype":"mail","queue":"q","args":[]}')
    pop(dispatcher)
    assert dispatcher.call("fail", t(dispatcher), "12345678", "w", "boom", "text") == "12345678"
    assert dispatcher.state.jobs[1].state is State.DEAD
    assert (get(dispatcher, "12345678")["state"], get(dispatcher, "12345678")["failure"]["group"]) == ("failed", "boom")
    assert dispatcher.call("failed", t(dispatcher)) == "{}", "a dead job is in no group"


def test_a_qless_job_is_fetched_and_acknowledged_through_faktory(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    put(dispatcher, "first", data='{"a":1}')
    put(dispatcher, "second", "depends", '["first"]')
    put(dispatcher, "third", "depends", '["second"]', delay="20")
    assert dispatcher.call("track", t(dispatcher), "track", "first") == "1"
    dispatcher.published.clear()
    job = fetched(faktory)
    assert (job["jid"], job["jobtype"], job["args"]) == ("first", "klass", [{"a": 1}])
    assert dispatcher.published == [["ql:popped", "first"]]
    shown = get(dispatcher, "first")
    assert (shown["state"], shown["worker"]) == ("running", "wid")
    assert faktory.ask('ACK {"jid":"first"}') == b"+OK\r\n"
    shown = get(dispatcher, "first")
    assert (shown["state"], [each["what"] for each in shown["history"]]) == ("complete", ["put", "popped", "done"])
    assert dispatcher.call("jobs", t(dispatcher), "complete") == ["first"]
    assert get(dispatcher, "second")["state"] == "waiting"
    assert fetched(faktory)["jid"] == "second"
    faktory.ask('ACK {"jid":"second"}')
    assert get(dispatcher, "third")["state"] == "scheduled"


def test_a_late_worker_cannot_settle_a_lease_of_another_protocol(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    put(dispatcher, "j")
    pop(dispatcher)
    assert dispatcher.call("timeout", t(dispatcher), "j") is None
    assert fetched(faktory)["jid"] == "j"
    with pytest.raises(QlessError, match="has been handed out to another worker: wid"):
        dispatcher.call("complete", t(dispatcher), "j", "w", "q", "{}")
    assert faktory.ask('ACK {"jid":"j"}') == b"+OK\r\n"
    assert get(dispatcher, "j")["state"] == "complete"


def test_a_put_takes_a_job_of_another_protocol_and_makes_it_a_qless_job(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    faktory.ask('PUSH {"jid":"12345678","jobtype":"mail","queue":"q","args":[]}')
    assert fetched(faktory)["jid"] == "12345678"
    dispatcher.published.clear()
    put(dispatcher, "12345678", "retries", "2", queue="other")
    assert [channel for channel, _ in dispatcher.published] == ["ql:log", "ql:w:wid", "ql:log"]
    shown = get(dispatcher, "12345678")
    assert (shown["queue"], shown["retries"], shown["state"]) == ("other", 2, "waiting")
    faktory.ask('ACK {"jid":"12345678"}')
    assert get(dispatcher, "12345678")["state"] == "waiting", "its lease is over"


def test_a_job_of_another_protocol_that_was_taken_back_is_stalled_until_popped(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    for jid in ("11111111", "22222222"):
        faktory.ask(f'PUSH {{"jid":"{jid}","jobtype":"mail","queue":"q","args":[]}}')
    pop(dispatcher)
    dispatcher.call("timeout", t(dispatcher), "11111111")
    assert [get(dispatcher, jid)["state"] for jid in ("11111111", "22222222")] == ["stalled", "waiting"]
    assert [job["state"] for job in pop(dispatcher, count="2")] == ["running", "running"]
    faktory.ask('PUSH {"jid":"33333333","jobtype":"mail","queue":"q","args":[]}')
    dispatcher.do(
        SetPriority("qless", dispatcher.now.wall, next(dispatcher.state.named("33333333")).number, float("inf"))
    )
    assert get(dispatcher, "33333333")["state"] == "waiting", "its own priority puts it first"


# Two clocks


@pytest.mark.parametrize("later", [1e9, -1e9, 4e15, -4e15])
def test_a_client_clock_does_not_end_a_lease_or_a_delay_of_another_protocol(
    dispatcher: QlessDispatcher, later: float
) -> None:
    put(dispatcher, "held")
    job = dispatcher.do(c.LeaseNext("faktory", ("q",), "wid", TERMS))
    assert job is not None
    dispatcher.do(c.Enqueue("faktory", [Spec("due", "q", "k", b"[]", Form.JSON, 0, RULES, dispatcher.now.wall + 60)]))
    for command in (["pop", "q", "w", "5"], ["peek", "q", "5"], ["queues"], ["jobs", "scheduled", "q"]):
        dispatcher.call(command[0], t(dispatcher, later), *command[1:])
    assert get(dispatcher, "held")["worker"] == "wid"
    assert get(dispatcher, "due")["state"] == "scheduled"


def test_a_qless_delay_ends_for_other_protocols_by_the_servers_clock(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    """The client's clock is a year behind. No timer releases the job; the fetch does."""
    early = repr(dispatcher.now.wall - 3e7)
    dispatcher.call("put", early, "w", "q", "j", "klass", "{}", "30")
    assert faktory.ask("FETCH q") == b""
    dispatcher.advance(1.0)
    assert faktory.take() == b""
    faktory.close()
    again = worker(dispatcher, ClockedFaktory(dispatcher), "wid")
    dispatcher.advance(29.5)
    assert get(dispatcher, "j")["state"] == "scheduled", "no timer releases it"
    assert fetched(again)["jid"] == "j"


def test_a_blocked_fetch_is_retried_when_a_lazy_deadline_passes(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    put(dispatcher, "j", delay="1.5")
    assert faktory.ask("FETCH q") == b""
    dispatcher.advance(1.75)
    assert b'"jid":"j"' in faktory.take()


def test_a_fetch_starts_the_grace_period_of_an_expired_qless_lease_and_then_takes_the_job(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    put(dispatcher, "j", "retries", "1")
    pop(dispatcher)
    dispatcher.advance(61.0)
    dispatcher.published.clear()
    assert faktory.ask("FETCH q") == b""
    assert [channel for channel, _ in dispatcher.published] == ["ql:w:w", "ql:log"], "the grace period starts"
    dispatcher.advance(3.0)
    assert faktory.take() == b"$-1\r\n"
    dispatcher.advance(6.5)
    again = worker(dispatcher, ClockedFaktory(dispatcher), "wid")
    assert again.ask("FETCH q") == b""
    dispatcher.advance(1.0)
    assert b'"jid":"j"' in again.take(), "the grace period ends during the wait"
    assert get(dispatcher, "j")["remaining"] == 0
    with pytest.raises(QlessError, match="given out to another worker: wid"):
        dispatcher.call("heartbeat", t(dispatcher), "j", "w")


def test_an_interval_makes_jobs_for_other_protocols_by_the_servers_clock(
    dispatcher: QlessDispatcher, faktory: Conversation
) -> None:
    dispatcher.call("recur", repr(dispatcher.now.wall - 1e8), "q", "r", "klass", "{}", "interval", "60", "0")
    assert fetched(faktory)["jid"] == "r-1"
    assert faktory.ask("FETCH q") == b""
    dispatcher.advance(1.0)
    assert json.loads(dispatcher.call("recur.get", t(dispatcher), "r"))["count"] == 1
    faktory.close()
    again = worker(dispatcher, ClockedFaktory(dispatcher), "wid")
    dispatcher.advance(60.0)
    assert fetched(again)["jid"] == "r-2"


def recur(dispatcher: QlessDispatcher, jid: str) -> None:
    dispatcher.call("recur", t(dispatcher), "q", jid, "klass", "{}", "interval", "60", "30")


@pytest.mark.parametrize("word", ["peek", "pop"])
def test_a_client_clock_does_not_advance_a_schedule_of_an_operator(dispatcher: QlessDispatcher, word: str) -> None:
    ControlPeer(dispatcher).ask(
        "schedule-add", name="sweep", queue="q", kind="K", every=60, start=dispatcher.now.wall + 40
    )
    recur(dispatcher, "theirs")
    first = dispatcher.now.wall + 40
    who = ("q", "w", "500") if word == "pop" else ("q", "500")
    ahead = json.loads(dispatcher.call(word, t(dispatcher, 1e6), *who))
    assert {job["spawned_from_jid"] for job in ahead} == {"theirs"}
    assert dispatcher.call("jobs", t(dispatcher), "recurring", "q") == ["sweep", "theirs"]
    assert json.loads(dispatcher.call("queues", t(dispatcher), "q"))["recurring"] == 2
    assert dispatcher.state.qless.intervals["sweep"].next == first
    dispatcher.call("unrecur", t(dispatcher), "theirs")
    dispatcher.advance(40.0)
    behind = json.loads(dispatcher.call(word, "1", *who))
    assert [job["jid"] for job in behind if job["spawned_from_jid"] == "sweep"] == ["sweep-1"], "the next run is due"
    assert dispatcher.state.qless.intervals["sweep"].next == int(first) + 60


def test_a_changed_interval_keeps_the_clock_of_its_creator(dispatcher: QlessDispatcher) -> None:
    operator = ControlPeer(dispatcher)
    operator.ask("schedule-add", name="own", queue="q", kind="K", every=60)
    recur(dispatcher, "theirs")
    dispatcher.call("recur.update", t(dispatcher), "own", "priority", "3", "interval", "90")
    operator.ask("schedule-edit", name="theirs", priority=3)
    assert {jid: each.by_server for jid, each in dispatcher.state.qless.intervals.items()} == {
        "own": True,
        "theirs": False,
    }
    recur(dispatcher, "own")
    assert not dispatcher.state.qless.intervals["own"].by_server, "the schedule was replaced"


def test_a_limit_of_a_queue_applies_to_every_protocol(dispatcher: QlessDispatcher, faktory: Conversation) -> None:
    dispatcher.call("config.set", t(dispatcher), "q-max-concurrency", "1")
    put(dispatcher, "a")
    put(dispatcher, "b")
    assert fetched(faktory)["jid"] == "b", "of two jobs put at the same time, the one with the greater name"
    assert dispatcher.call("pop", t(dispatcher), "q", "w", "1") == "{}"
    assert faktory.ask("FETCH q") == b""
    second = worker(dispatcher, ClockedFaktory(dispatcher), "wid2")
    second.ask('ACK {"jid":"b"}')
    dispatcher.do(c.Succeed("b", c.Claim("faktory", "wid")))
    assert b'"jid":"a"' in faktory.take(), "the end of a lease wakes the waiter"


def test_a_removed_dependency_fails_its_dependents(dispatcher: QlessDispatcher) -> None:
    put(dispatcher, "need")
    put(dispatcher, "needy", "depends", '["need"]')
    number = next(dispatcher.state.named("need")).number
    dispatcher.do(admin.Remove("faktory", "discarded", [number], frozenset(State)))
    shown = get(dispatcher, "needy")
    assert (shown["state"], shown["failure"]["group"]) == ("failed", "dependency-lost")
    assert json.loads(dispatcher.call("failed", t(dispatcher))) == {"dependency-lost": 1}


def test_a_failed_dependency_keeps_its_dependents_waiting(dispatcher: QlessDispatcher) -> None:
    put(dispatcher, "need")
    put(dispatcher, "needy", "depends", '["need"]')
    pop(dispatcher)
    dispatcher.call("fail", t(dispatcher), "need", "w", "boom", "text")
    assert get(dispatcher, "needy")["state"] == "depends"
    put(dispatcher, "need")
    pop(dispatcher)
    dispatcher.call("complete", t(dispatcher), "need", "w", "q", "{}")
    assert get(dispatcher, "needy")["state"] == "waiting"


def test_flush_removes_all_qless_state(dispatcher: QlessDispatcher) -> None:
    put(dispatcher, "j", "tags", '["red"]')
    put(dispatcher, "k", delay="9")
    pop(dispatcher)
    dispatcher.call("recur", t(dispatcher), "q", "r", "klass", "{}", "interval", "60", "0")
    dispatcher.call("config.set", t(dispatcher), "heartbeat", "5")
    dispatcher.call("track", t(dispatcher), "track", "j")
    dispatcher.call("pause", t(dispatcher), "never used")
    dispatcher.do(admin.Flush("faktory"))
    state = dispatcher.state
    assert not any((state.jobs, state.queues, state.lazy.queues, state.lazy.walls.at))
    assert not any((state.tags.uses, state.workers.seen, state.workers.leases, state.qless.watched, state.qless.config))
    assert not any(
        (state.qless.intervals, state.limits, state.stats.days, state.qless.completed, state.qless.failed_in)
    )
    assert dispatcher.engine.due_in(dispatcher.now) is None


def test_a_restart_restores_all_qless_state(dispatcher: QlessDispatcher) -> None:
    put(dispatcher, "j", "retries", "3")
    pop(dispatcher)
    before = get(dispatcher, "j")
    again = dispatcher.restarted()
    assert json.loads(QlessDispatcher(again.state, again.now).call("get", t(dispatcher), "j")) == before


def test_unchanged_data_from_a_worker_does_not_change_the_payload(dispatcher: QlessDispatcher) -> None:
    """Workers send the data with every call."""
    long = json.dumps({"text": "x" * 1_000})

    def written(*words: str) -> bytes | None:
        before = len(dispatcher.events)
        dispatcher.call(*words)
        [event] = [each for each in dispatcher.events[before:] if hasattr(each, "payload")]
        assert isinstance(event, Renewed | Succeeded | Failed)
        return event.payload

    for jid in ("a", "b"):
        put(dispatcher, jid, data=long)
    pop(dispatcher, count="2")
    assert written("heartbeat", t(dispatcher), "a", "w", long) is None
    assert written("heartbeat", t(dispatcher), "a", "w", "{}") == b"{}"
    assert written("complete", t(dispatcher), "a", "w", "q", "{}") is None
    assert written("fail", t(dispatcher), "b", "w", "group", "message", long) is None
    assert (get(dispatcher, "a")["data"], get(dispatcher, "b")["data"]) == ("{}", long)


ANONYMOUS = "class@anonymous\0/srv/app/" + "very/long/path/" * 20 + "Report.php:12$0"


def test_a_php_anonymous_class_is_a_klass_in_every_protocol(
    dispatcher: QlessDispatcher, faktory: Conversation, tmp_path: Path
) -> None:
    for dialect in (UNIFIED, UNIFIED_2013, THROTTLES, REQLESS_013, PHP, REQLESS):
        dispatcher.dialect = dialect
        queue, jid = f"of-{dialect.name}", f"put-by-{dialect.name}"
        worker_name = () if dialect.old else ("w",)
        name, given = ("queue.put", "job.get") if dialect.is_reqless else ("put", "get")
        assert dispatcher.call(name, t(dispatcher), *worker_name, queue, jid, ANONYMOUS, "{}", "0") == jid
        assert json.loads(dispatcher.call(given, t(dispatcher), jid))["klass"] == ANONYMOUS
        assert fetched(faktory, queue)["jobtype"] == ANONYMOUS
    line = Line("", ["q", "by-script", ANONYMOUS, "{}", t(dispatcher), "0"], {}, [], "put", 1)
    assert dispatcher.answer_script(line) == {"bulk": "by-script"}
    dispatcher.dialect = UNIFIED
    [job] = pop(dispatcher)
    assert job["klass"] == ANONYMOUS
    dispatcher.call("recur", t(dispatcher), "again", "r", ANONYMOUS, "{}", "interval", "60", "0")
    assert json.loads(dispatcher.call("recur.get", t(dispatcher), "r"))["klass"] == ANONYMOUS
    assert dispatcher.call("recur.update", t(dispatcher), "r", "klass", ANONYMOUS + "1") == 1
    assert [each["klass"] for each in pop(dispatcher, queue="again")] == [ANONYMOUS + "1"]
    masenko = MasenkoPeer(dispatcher, MasenkoProtocol())
    put(dispatcher, "m", queue="m")
    dispatcher.call("put", t(dispatcher), "w", "m", "m", ANONYMOUS, "{}", "0")
    assert json.loads(masenko.ask('FETCH {"queues":["m"]}').partition(b" ")[2])["name"] == ANONYMOUS
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)
    assert picture(from_snapshot(dispatcher.state, tmp_path)) == picture(dispatcher.state)


def test_the_length_of_a_klass_is_limited(dispatcher: QlessDispatcher) -> None:
    put_klass = ("put", t(dispatcher), "w", "q", "j")
    assert dispatcher.call(*put_klass, "ü" * (KIND_BYTES // 2), "{}", "0") == "j"
    for klass in ("ü" * (KIND_BYTES // 2) + "x", "x" * (KIND_BYTES + 1)):
        with pytest.raises(QlessError, match=f"a klass may have at most {KIND_BYTES} bytes"):
            dispatcher.call(*put_klass, klass, "{}", "0")
    with pytest.raises(QlessError, match="a klass may have at most"):
        dispatcher.call("recur", t(dispatcher), "q", "r", "x" * (KIND_BYTES + 1), "{}", "interval", "60", "0")
    with pytest.raises(QlessError, match="a name may have at most 255 bytes and no NUL"):
        dispatcher.call("put", t(dispatcher), "w", "q", "j\0", "klass", "{}", "0")
