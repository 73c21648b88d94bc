"""Crossing over: jobs that come through one door and leave through another (MODEL sections 2, 6 and 9)."""

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
from crossdock.protocols.redis.qless.arguments import Raised
from crossdock.protocols.redis.qless.call import PHP, REQLESS, REQLESS_013, THROTTLES, UNIFIED, UNIFIED_2013
from tests.model import invariants
from tests.model.bench import RULES, TERMS
from tests.qless.replay import Line, QlessDesk
from tests.qless.test_replay import from_snapshot, replayed
from tests.support.control_peer import ControlPeer
from tests.support.conversation import Conversation, Door, worker
from tests.support.masenko_peer import MasenkoPeer
from tests.support.picture import picture


@pytest.fixture
def desk() -> QlessDesk:
    return QlessDesk()


@pytest.fixture
def faktory(desk: QlessDesk) -> Conversation:
    return worker(desk, Door(desk), "wid")


def t(desk: QlessDesk, later: float = 0.0) -> str:
    return repr(desk.now.wall + later)


def put(desk: QlessDesk, jid: str, *more: str, queue: str = "q", delay: str = "0", data: str = "{}") -> None:
    assert desk.call("put", t(desk), "w", queue, jid, "klass", data, delay, *more) == jid


def get(desk: QlessDesk, jid: str) -> Any:
    found = desk.call("get", t(desk), jid)
    return None if found is None else json.loads(found)


def pop(desk: QlessDesk, *, later: float = 0.0, name: str = "w", queue: str = "q", count: str = "1") -> list[Any]:
    return list(json.loads(desk.call("pop", t(desk, later), queue, name, count)))


def fetched(faktory: Conversation, queue: str = "q") -> Any:
    said = faktory.ask(f"FETCH {queue}")
    return json.loads(said.split(b"\r\n")[1]) if said.startswith(b"$") and not said.startswith(b"$-1") else None


def test_a_faktory_job_is_popped_tagged_followed_and_completed(desk: QlessDesk, faktory: Conversation) -> None:
    faktory.ask('PUSH {"jid":"12345678","jobtype":"mail","queue":"q","args":[1,"a"]}')
    [job] = pop(desk)
    assert (job["jid"], job["klass"], job["state"], job["worker"]) == ("12345678", "mail", "running", "w")
    assert json.loads(job["data"]) == [1, "a"]
    assert [each["what"] for each in job["history"]] == ["put", "popped"]
    assert desk.call("tag", t(desk), "add", "12345678", "red") == '["red"]'
    assert desk.call("track", t(desk), "track", "12345678") == "1"
    assert desk.call("heartbeat", t(desk, 5), "12345678", "w") == int(desk.now.wall) + 65
    desk.published.clear()
    assert desk.call("complete", t(desk, 7), "12345678", "w", "q", "{}") == "complete"
    assert desk.published == [
        ["ql:completed", "12345678"],
        ["ql:log", '{"jid":"12345678","event":"completed","queue":"q"}'],
    ]
    assert get(desk, "12345678") is None, "its own rules say: gone"
    assert json.loads(desk.call("tag", t(desk), "get", "red")) == {"jobs": {}, "total": 0}


def test_one_that_goes_on_to_a_next_queue_is_one_of_qless_with_its_history_and_its_tries(
    desk: QlessDesk, faktory: Conversation
) -> None:
    faktory.ask('PUSH {"jid":"12345678","jobtype":"mail","queue":"q","args":[1],"retry":1}')
    pop(desk)
    assert desk.call("complete", t(desk), "12345678", "w", "q", '{"a":1}', "next", "q2") == "waiting"
    [job] = pop(desk, queue="q2")
    assert [(each["what"], each.get("q", "")) for each in job["history"]] == [
        ("put", "q"),
        ("popped", ""),
        ("done", ""),
        ("put", "q2"),
        ("popped", ""),
    ]
    assert (job["retries"], job["remaining"], job["expires"]) == (1, 1, float(t(desk, 60)))
    assert desk.call("retry", t(desk), "12345678", "q2", "w") == 0
    assert get(desk, "12345678")["state"] == "waiting"
    pop(desk, queue="q2")
    assert desk.call("retry", t(desk), "12345678", "q2", "w") == -1
    assert get(desk, "12345678")["state"] == "failed"
    assert json.loads(desk.call("failed", t(desk))) == {"failed-retries-q2": 1}
    invariants.check(desk.memory)


def test_one_that_went_on_is_kept_when_it_has_succeeded(desk: QlessDesk, faktory: Conversation) -> None:
    faktory.ask('PUSH {"jid":"12345678","jobtype":"mail","queue":"q","args":[1]}')
    pop(desk)
    desk.call("complete", t(desk), "12345678", "w", "q", "{}", "next", "q2")
    assert fetched(faktory, "q2")["jid"] == "12345678"
    faktory.ask('ACK {"jid":"12345678"}')
    assert get(desk, "12345678")["state"] == "complete"
    assert desk.call("jobs", t(desk), "complete") == ["12345678"]
    invariants.check(desk.memory)


def test_bytes_that_go_on_to_a_next_queue_are_the_data_that_their_worker_sent(
    desk: QlessDesk, faktory: Conversation
) -> None:
    desk.do(c.Enqueue("workq", [Spec("12345678", "q", "kind", b"raw", Form.RAW, 0, RULES)]))
    [job] = pop(desk)
    assert json.loads(job["data"]) == {"payload": "raw"}
    desk.call("complete", t(desk), "12345678", "w", "q", '{"payload":"raw","step":2}', "next", "q2")
    assert fetched(faktory, "q2")["args"] == [{"payload": "raw", "step": 2}]


def test_one_whose_lost_leases_cost_nothing_has_as_many_tries_as_a_put_gives(desk: QlessDesk) -> None:
    its_rules = replace(RULES, max_failures=0, lapse=LeaseExpiry.RETURN)
    desk.do(c.Enqueue("workq", [Spec("12345678", "q", "kind", b"raw", Form.RAW, 0, its_rules)]))
    pop(desk)
    desk.call("complete", t(desk), "12345678", "w", "q", "{}", "next", "q2")
    assert get(desk, "12345678")["remaining"] == 5


def test_a_put_over_it_goes_on_with_its_history(desk: QlessDesk, faktory: Conversation) -> None:
    faktory.ask('PUSH {"jid":"12345678","jobtype":"mail","queue":"q","args":[1]}')
    pop(desk)
    put(desk, "12345678", queue="q2")
    shown = [(each["what"], each.get("q", "")) for each in get(desk, "12345678")["history"]]
    assert shown == [("put", "q"), ("popped", ""), ("put", "q2")]


def test_its_retry_with_a_delay_is_listed_where_it_is_counted(desk: QlessDesk, faktory: Conversation) -> None:
    for jid in ("12345678", "23456789"):
        faktory.ask(f'PUSH {{"jid":"{jid}","jobtype":"mail","queue":"q","args":[]}}')
    pop(desk)
    assert desk.call("retry", t(desk), "12345678", "q", "w", "30") == 24
    put(desk, "own", delay="60")
    assert json.loads(desk.call("queues", t(desk), "q"))["scheduled"] == 2
    assert desk.call("jobs", t(desk), "scheduled", "q") == ["own", "12345678"]
    assert desk.call("jobs", t(desk), "scheduled", "q", "-1") == ["12345678"]
    assert desk.call("jobs", t(desk), "scheduled", "p") == []


def test_its_failure_here_is_final_by_its_own_rules(desk: QlessDesk, faktory: Conversation) -> None:
    faktory.ask('PUSH {"jid":"12345678","jobtype":"mail","queue":"q","args":[]}')
    pop(desk)
    assert desk.call("fail", t(desk), "12345678", "w", "boom", "text") == "12345678"
    assert desk.memory.jobs[1].state is State.DEAD
    assert (get(desk, "12345678")["state"], get(desk, "12345678")["failure"]["group"]) == ("failed", "boom")
    assert desk.call("failed", t(desk)) == "{}", "a dead job is in no group"


def test_a_qless_job_is_fetched_and_acknowledged_over_there(desk: QlessDesk, faktory: Conversation) -> None:
    put(desk, "first", data='{"a":1}')
    put(desk, "second", "depends", '["first"]')
    put(desk, "third", "depends", '["second"]', delay="20")
    assert desk.call("track", t(desk), "track", "first") == "1"
    desk.published.clear()
    job = fetched(faktory)
    assert (job["jid"], job["jobtype"], job["args"]) == ("first", "klass", [{"a": 1}])
    assert desk.published == [["ql:popped", "first"]]
    shown = get(desk, "first")
    assert (shown["state"], shown["worker"]) == ("running", "wid")
    assert faktory.ask('ACK {"jid":"first"}') == b"+OK\r\n"
    shown = get(desk, "first")
    assert (shown["state"], [each["what"] for each in shown["history"]]) == ("complete", ["put", "popped", "done"])
    assert desk.call("jobs", t(desk), "complete") == ["first"]
    assert get(desk, "second")["state"] == "waiting"
    assert fetched(faktory)["jid"] == "second"
    faktory.ask('ACK {"jid":"second"}')
    assert get(desk, "third")["state"] == "scheduled"


def test_a_late_worker_of_this_door_cannot_settle_what_that_one_holds(desk: QlessDesk, faktory: Conversation) -> None:
    put(desk, "j")
    pop(desk)
    assert desk.call("timeout", t(desk), "j") is None
    assert fetched(faktory)["jid"] == "j"
    with pytest.raises(Raised, match="has been handed out to another worker: wid"):
        desk.call("complete", t(desk), "j", "w", "q", "{}")
    assert faktory.ask('ACK {"jid":"j"}') == b"+OK\r\n"
    assert get(desk, "j")["state"] == "complete"


def test_a_put_takes_a_job_of_another_door_and_makes_it_one_of_this(desk: QlessDesk, faktory: Conversation) -> None:
    faktory.ask('PUSH {"jid":"12345678","jobtype":"mail","queue":"q","args":[]}')
    assert fetched(faktory)["jid"] == "12345678"
    desk.published.clear()
    put(desk, "12345678", "retries", "2", queue="other")
    assert [channel for channel, _ in desk.published] == ["ql:log", "ql:w:wid", "ql:log"]
    shown = get(desk, "12345678")
    assert (shown["queue"], shown["retries"], shown["state"]) == ("other", 2, "waiting")
    faktory.ask('ACK {"jid":"12345678"}')
    assert get(desk, "12345678")["state"] == "waiting", "its lease is over"


def test_another_doors_job_that_was_taken_back_is_stalled_until_it_is_popped(
    desk: QlessDesk, faktory: Conversation
) -> None:
    for jid in ("11111111", "22222222"):
        faktory.ask(f'PUSH {{"jid":"{jid}","jobtype":"mail","queue":"q","args":[]}}')
    pop(desk)
    desk.call("timeout", t(desk), "11111111")
    assert [get(desk, jid)["state"] for jid in ("11111111", "22222222")] == ["stalled", "waiting"]
    assert [job["state"] for job in pop(desk, count="2")] == ["running", "running"]
    faktory.ask('PUSH {"jid":"33333333","jobtype":"mail","queue":"q","args":[]}')
    desk.do(SetPriority("qless", desk.now.wall, next(desk.memory.named("33333333")).number, float("inf")))
    assert get(desk, "33333333")["state"] == "waiting", "first by its own priority"


# Two clocks


@pytest.mark.parametrize("later", [1e9, -1e9, 4e15, -4e15])
def test_no_callers_clock_ends_a_lease_or_a_wait_of_another_door(desk: QlessDesk, later: float) -> None:
    put(desk, "held")
    job = desk.do(c.LeaseNext("faktory", ["q"], "wid", TERMS))
    assert job is not None
    desk.do(c.Enqueue("faktory", [Spec("due", "q", "k", b"[]", Form.JSON, 0, RULES, desk.now.wall + 60)]))
    for command in (["pop", "q", "w", "5"], ["peek", "q", "5"], ["queues"], ["jobs", "scheduled", "q"]):
        desk.call(command[0], t(desk, later), *command[1:])
    assert get(desk, "held")["worker"] == "wid"
    assert get(desk, "due")["state"] == "scheduled"


def test_a_wait_set_here_is_over_for_others_by_the_servers_clock(desk: QlessDesk, faktory: Conversation) -> None:
    """Though its caller's clock is a year behind: no timer carries it out, the fetch does."""
    early = repr(desk.now.wall - 3e7)
    desk.call("put", early, "w", "q", "j", "klass", "{}", "30")
    assert faktory.ask("FETCH q") == b""
    desk.advance(1.0)
    assert faktory.take() == b""
    faktory.close()
    again = worker(desk, Door(desk), "wid")
    desk.advance(29.5)
    assert get(desk, "j")["state"] == "scheduled", "nothing happens by itself"
    assert fetched(again)["jid"] == "j"


def test_who_waits_for_a_job_is_asked_when_a_lazy_deadline_comes(desk: QlessDesk, faktory: Conversation) -> None:
    put(desk, "j", delay="1.5")
    assert faktory.ask("FETCH q") == b""
    desk.advance(1.75)
    assert b'"jid":"j"' in faktory.take()


def test_a_lease_from_here_is_warned_of_and_handed_over_by_a_fetch(desk: QlessDesk, faktory: Conversation) -> None:
    put(desk, "j", "retries", "1")
    pop(desk)
    desk.advance(61.0)
    desk.published.clear()
    assert faktory.ask("FETCH q") == b""
    assert [channel for channel, _ in desk.published] == ["ql:w:w", "ql:log"], "the grace begins"
    desk.advance(3.0)
    assert faktory.take() == b"$-1\r\n"
    desk.advance(6.5)
    again = worker(desk, Door(desk), "wid")
    assert again.ask("FETCH q") == b""
    desk.advance(1.0)
    assert b'"jid":"j"' in again.take(), "the grace is over while it waits"
    assert get(desk, "j")["remaining"] == 0
    with pytest.raises(Raised, match="given out to another worker: wid"):
        desk.call("heartbeat", t(desk), "j", "w")


def test_an_interval_makes_jobs_for_other_doors_by_the_servers_clock(desk: QlessDesk, faktory: Conversation) -> None:
    desk.call("recur", repr(desk.now.wall - 1e8), "q", "r", "klass", "{}", "interval", "60", "0")
    assert fetched(faktory)["jid"] == "r-1"
    assert faktory.ask("FETCH q") == b""
    desk.advance(1.0)
    assert json.loads(desk.call("recur.get", t(desk), "r"))["count"] == 1
    faktory.close()
    again = worker(desk, Door(desk), "wid")
    desk.advance(60.0)
    assert fetched(again)["jid"] == "r-2"


def recur(desk: QlessDesk, jid: str) -> None:
    desk.call("recur", t(desk), "q", jid, "klass", "{}", "interval", "60", "30")


@pytest.mark.parametrize("word", ["peek", "pop"])
def test_no_callers_clock_brings_forward_what_an_operator_made(desk: QlessDesk, word: str) -> None:
    ControlPeer(desk).ask("recur", id="sweep", queue="q", kind="K", interval_s=60, offset_s=40)
    recur(desk, "theirs")
    first = desk.now.wall + 40
    who = ("q", "w", "500") if word == "pop" else ("q", "500")
    ahead = json.loads(desk.call(word, t(desk, 1e6), *who))
    assert {job["spawned_from_jid"] for job in ahead} == {"theirs"}
    assert desk.call("jobs", t(desk), "recurring", "q") == ["sweep", "theirs"]
    assert json.loads(desk.call("queues", t(desk), "q"))["recurring"] == 2
    assert desk.memory.intervals["sweep"].next == first
    desk.call("unrecur", t(desk), "theirs")
    desk.advance(40.0)
    behind = json.loads(desk.call(word, "1", *who))
    assert [job["jid"] for job in behind if job["spawned_from_jid"] == "sweep"] == ["sweep-1"], "it has come here"
    assert desk.memory.intervals["sweep"].next == int(first) + 60


def test_who_changes_an_interval_leaves_it_the_clock_of_its_maker(desk: QlessDesk) -> None:
    operator = ControlPeer(desk)
    operator.ask("recur", id="own", queue="q", kind="K", interval_s=60)
    recur(desk, "theirs")
    desk.call("recur.update", t(desk), "own", "priority", "3", "interval", "90")
    operator.ask("recur", id="theirs", priority=3)
    assert {jid: each.by_server for jid, each in desk.memory.intervals.items()} == {"own": True, "theirs": False}
    recur(desk, "own")
    assert not desk.memory.intervals["own"].by_server, "it was made anew"


def test_a_limit_of_a_queue_holds_for_every_door(desk: QlessDesk, faktory: Conversation) -> None:
    desk.call("config.set", t(desk), "q-max-concurrency", "1")
    put(desk, "a")
    put(desk, "b")
    assert fetched(faktory)["jid"] == "b", "of two put at once the greater name"
    assert desk.call("pop", t(desk), "q", "w", "1") == "{}"
    assert faktory.ask("FETCH q") == b""
    second = worker(desk, Door(desk), "wid2")
    second.ask('ACK {"jid":"b"}')
    desk.do(c.Succeed("b", c.Claim("faktory", "wid")))
    assert b'"jid":"a"' in faktory.take(), "the end of a lease is what it waited for"


def test_a_need_that_is_gone_fails_who_waits_for_it(desk: QlessDesk) -> None:
    put(desk, "need")
    put(desk, "needy", "depends", '["need"]')
    number = next(desk.memory.named("need")).number
    desk.do(admin.Remove("faktory", "discarded", [number], frozenset(State)))
    shown = get(desk, "needy")
    assert (shown["state"], shown["failure"]["group"]) == ("failed", "dependency-lost")
    assert json.loads(desk.call("failed", t(desk))) == {"dependency-lost": 1}


def test_a_need_that_failed_is_waited_for(desk: QlessDesk) -> None:
    put(desk, "need")
    put(desk, "needy", "depends", '["need"]')
    pop(desk)
    desk.call("fail", t(desk), "need", "w", "boom", "text")
    assert get(desk, "needy")["state"] == "depends"
    put(desk, "need")
    pop(desk)
    desk.call("complete", t(desk), "need", "w", "q", "{}")
    assert get(desk, "needy")["state"] == "waiting"


def test_flush_empties_all_of_it(desk: QlessDesk) -> None:
    put(desk, "j", "tags", '["red"]')
    put(desk, "k", delay="9")
    pop(desk)
    desk.call("recur", t(desk), "q", "r", "klass", "{}", "interval", "60", "0")
    desk.call("config.set", t(desk), "heartbeat", "5")
    desk.call("track", t(desk), "track", "j")
    desk.call("pause", t(desk), "never used")
    desk.do(admin.Flush("faktory"))
    memory = desk.memory
    assert not any((memory.jobs, memory.queues, memory.lazy.queues, memory.lazy.walls.at))
    assert not any((memory.tags.uses, memory.workers.seen, memory.workers.given, memory.watched, memory.config))
    assert not any((memory.intervals, memory.limits, memory.stats.days, memory.completed, memory.failed_in))
    assert desk.engine.due_in(desk.now) is None


def test_after_a_restart_everything_goes_on(desk: QlessDesk) -> None:
    put(desk, "j", "retries", "3")
    pop(desk)
    before = get(desk, "j")
    again = desk.restarted()
    assert json.loads(QlessDesk(again.memory, again.now).call("get", t(desk), "j")) == before


def test_data_that_a_worker_sends_back_as_it_was_is_not_written_again(desk: QlessDesk) -> None:
    """Workers send all of it with every call."""
    long = json.dumps({"text": "x" * 1_000})

    def written(*words: str) -> bytes | None:
        before = len(desk.events)
        desk.call(*words)
        [event] = [each for each in desk.events[before:] if hasattr(each, "payload")]
        assert isinstance(event, Renewed | Succeeded | Failed)
        return event.payload

    for jid in ("a", "b"):
        put(desk, jid, data=long)
    pop(desk, count="2")
    assert written("heartbeat", t(desk), "a", "w", long) is None
    assert written("heartbeat", t(desk), "a", "w", "{}") == b"{}"
    assert written("complete", t(desk), "a", "w", "q", "{}") is None
    assert written("fail", t(desk), "b", "w", "group", "message", long) is None
    assert (get(desk, "a")["data"], get(desk, "b")["data"]) == ("{}", long)


ANONYMOUS = "class@anonymous\0/srv/app/" + "very/long/path/" * 20 + "Report.php:12$0"


def test_a_php_anonymous_class_is_a_klass_at_every_door(desk: QlessDesk, faktory: Conversation, tmp_path: Path) -> None:
    for dialect in (UNIFIED, UNIFIED_2013, THROTTLES, REQLESS_013, PHP, REQLESS):
        desk.dialect = dialect
        queue, jid = f"of-{dialect.name}", f"put-by-{dialect.name}"
        worker_name = () if dialect.old else ("w",)
        name, given = ("queue.put", "job.get") if dialect.renamed else ("put", "get")
        assert desk.call(name, t(desk), *worker_name, queue, jid, ANONYMOUS, "{}", "0") == jid
        assert json.loads(desk.call(given, t(desk), jid))["klass"] == ANONYMOUS
        assert fetched(faktory, queue)["jobtype"] == ANONYMOUS
    line = Line("", ["q", "by-script", ANONYMOUS, "{}", t(desk), "0"], {}, [], "put", 1)
    assert desk.answer_script(line) == {"bulk": "by-script"}
    desk.dialect = UNIFIED
    [job] = pop(desk)
    assert job["klass"] == ANONYMOUS
    desk.call("recur", t(desk), "again", "r", ANONYMOUS, "{}", "interval", "60", "0")
    assert json.loads(desk.call("recur.get", t(desk), "r"))["klass"] == ANONYMOUS
    assert desk.call("recur.update", t(desk), "r", "klass", ANONYMOUS + "1") == 1
    assert [each["klass"] for each in pop(desk, queue="again")] == [ANONYMOUS + "1"]
    masenko = MasenkoPeer(desk, MasenkoProtocol())
    put(desk, "m", queue="m")
    desk.call("put", t(desk), "w", "m", "m", ANONYMOUS, "{}", "0")
    assert json.loads(masenko.ask('FETCH {"queues":["m"]}').partition(b" ")[2])["name"] == ANONYMOUS
    assert picture(replayed(desk)) == picture(desk.memory)
    assert picture(from_snapshot(desk.memory, tmp_path)) == picture(desk.memory)


def test_a_klass_has_an_end(desk: QlessDesk) -> None:
    put_klass = ("put", t(desk), "w", "q", "j")
    assert desk.call(*put_klass, "ü" * (KIND_BYTES // 2), "{}", "0") == "j"
    for klass in ("ü" * (KIND_BYTES // 2) + "x", "x" * (KIND_BYTES + 1)):
        with pytest.raises(Raised, match=f"a klass has more than {KIND_BYTES} bytes"):
            desk.call(*put_klass, klass, "{}", "0")
    with pytest.raises(Raised, match="a klass has more than"):
        desk.call("recur", t(desk), "q", "r", "x" * (KIND_BYTES + 1), "{}", "interval", "60", "0")
    with pytest.raises(Raised, match="a name has more than 255 bytes, or NUL"):
        desk.call("put", t(desk), "w", "q", "j\0", "klass", "{}", "0")
