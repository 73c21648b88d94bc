"""Calls that are refused, and what a refusal leaves behind: nothing is published, and the job is as it was."""

import json
from typing import Any, Final

import pytest

from crossdock.model.commands.qless import SetPriority
from crossdock.protocols.redis.qless.arguments import Raised
from crossdock.protocols.redis.qless.call import PHP, REQLESS_013, THROTTLES, UNIFIED, UNIFIED_2013, Dialect
from crossdock.protocols.redis.qless.perscript import dispatch as perscript
from tests.qless.replay import QlessDesk
from tests.qless.test_replay import replayed
from tests.support.picture import picture

DIALECTS: Final = [UNIFIED, UNIFIED_2013, THROTTLES, REQLESS_013, PHP]


def desk_of(dialect: Dialect = UNIFIED) -> QlessDesk:
    desk = QlessDesk()
    desk.dialect = dialect
    return desk


def put(desk: QlessDesk, jid: str, *more: str, at: str = "1") -> Any:
    worker = [] if desk.dialect.old else ["w"]
    return desk.call("put", at, *worker, "q", jid, "klass", "{}", "0", *more)


def script(desk: QlessDesk, name: str, *args: str, keys: int = 0) -> Any:
    """One call of the oldest form."""
    words = [arg.encode() for arg in args]
    return perscript.answering(name)(desk, words[:keys], words[keys:], desk.tell)


def job_of(desk: QlessDesk, jid: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(desk.call("get", "9", jid))
    return found


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_put_whose_tags_are_false_is_refused_and_publishes_nothing(dialect: Dialect) -> None:
    desk = desk_of(dialect)
    put(desk, "j", "tags", '["red"]')
    desk.published = []
    for jid in ("j", "k"):
        with pytest.raises(Raised, match=r'Put\(\): Arg "tags" not JSONfalse'):
            put(desk, jid, "tags", "false")
    assert desk.published == []


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("option", ["retries", "priority"])
@pytest.mark.parametrize("value", ["inf", "-inf", "1e400", "-1e400"])
def test_a_job_is_refused_whose_retries_or_priority_have_no_end(option: str, value: str, dialect: Dialect) -> None:
    desk = desk_of(dialect)
    put(desk, "j", "tags", '["red"]')
    desk.published = []
    for jid in ("j", "k"):
        with pytest.raises(Raised, match=rf'Put\(\): Arg "{option}" not a number(: )?{value}'):
            put(desk, jid, option, value)
    assert desk.published == []
    assert job_of(desk, "j")["tags"] == ["red"]
    assert desk.call("get", "9", "k") is None


def test_a_priority_without_an_end_is_refused() -> None:
    desk = desk_of()
    put(desk, "j", "priority", "3")
    with pytest.raises(Raised, match=r'Priority\(\): Arg "priority" missing or not a number: 1e400'):
        desk.call("priority", "1", "j", "1e400")
    with pytest.raises(Raised, match=r'Priority\(\): Arg "priority" missing or not a number: inf'):
        script(desk, "priority", "j", "inf")
    assert job_of(desk, "j")["priority"] == 3


def test_a_priority_without_an_end_that_a_journal_holds_is_shown() -> None:
    desk = desk_of()
    put(desk, "j")
    desk.do(SetPriority("qless", 1.0, next(desk.memory.named("j")).number, float("inf")))
    assert job_of(desk, "j")["priority"] == float("inf")


@pytest.mark.parametrize("option", ["retries", "priority"])
def test_a_recurring_job_is_refused_whose_retries_or_priority_have_no_end(option: str) -> None:
    desk = desk_of()
    with pytest.raises(Raised, match=rf'Recur\(\): Arg "{option}" not a number: inf'):
        desk.call("recur", "1", "q", "r", "klass", "{}", "interval", "60", "0", option, "inf")
    with pytest.raises(Raised, match=rf'Recur\(\): Arg "{option}" must be a number. Got: 1e400'):
        script(desk, "recur", "on", "q", "r", "k", "{}", "1", "interval", "60", "0", "tags", "[]", option, "1e400")
    desk.call("recur", "1", "q", "r", "klass", "{}", "interval", "60", "0")
    with pytest.raises(Raised, match=rf'Recur\(\): Arg "{option}" must be a number: 1e400'):
        desk.call("recur.update", "1", "r", option, "1e400")
    assert json.loads(desk.call("recur.get", "1", "r"))[option] == 0


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    ("depends", "kind"), [('[["a"]]', "table"), ("[null]", "userdata"), ("[true]", "boolean"), ('["a",{}]', "table")]
)
def test_a_dependency_that_is_no_name_is_an_error(depends: str, kind: str, dialect: Dialect) -> None:
    desk = desk_of(dialect)
    put(desk, "a")
    put(desk, "j", "tags", '["red"]')
    desk.call("pop", "2", "q", "w", "2")
    before, desk.published = job_of(desk, "j"), []
    refusal = rf"attempt to concatenate local 'j' \(a {kind} value\)"
    for jid in ("j", "k"):
        with pytest.raises(Raised, match=refusal):
            put(desk, jid, "depends", depends, at="3")
    with pytest.raises(Raised, match=refusal):
        desk.call("complete", "4", "j", "w", "q", "{}", "next", "q2", "depends", depends)
    assert job_of(desk, "j") == before, "the scripts leave it in no queue"
    assert desk.call("get", "9", "k") is None and desk.published == []


def test_a_dependency_that_is_no_name_is_an_error_of_the_oldest_form() -> None:
    desk = desk_of()
    with pytest.raises(Raised, match=r"attempt to concatenate local 'j' \(a table value\)"):
        script(desk, "put", "q", "j", "klass", "{}", "1", "0", "depends", '[["a"]]', keys=1)
    assert desk.call("get", "9", "j") is None


def test_a_put_that_this_server_alone_refuses_takes_no_tags_from_a_job() -> None:
    desk = desk_of()
    put(desk, "j", "tags", '["red"]')
    for more in (["tags", json.dumps(["x"] * 1_001)], ["tags", json.dumps(["x" * 256])], ["retries", "inf"]):
        with pytest.raises(Raised):
            put(desk, "j", *more)
    assert job_of(desk, "j")["tags"] == ["red"]
    assert json.loads(desk.call("tag", "9", "get", "red"))["total"] == 1


def test_a_recurring_job_whose_tags_or_throttles_are_an_object_is_refused() -> None:
    desk, head = desk_of(THROTTLES), ("recur", "1", "q", "r", "klass", "{}", "interval", "60", "0")
    for option, said in (("tags", "must be JSON string array"), ("throttles", "not JSON array")):
        with pytest.raises(Raised, match=rf'Recur\(\): Arg "{option}" {said}: {{"a":1}}'):
            desk.call(*head, option, '{"a":1}')
        assert desk.call("recur.get", "1", "r") is None
    with pytest.raises(Raised, match=r'Recur\(\): Arg "tags" must be JSON-encoded array of string. Got: {"a":1}'):
        script(desk, "recur", "on", "q", "r", "k", "{}", "1", "interval", "60", "0", "tags", '{"a":1}')
    desk.call(*head, "tags", "{}", "throttles", "{}")
    with pytest.raises(Raised, match=r'Recur\(\): Arg "throttles" is not JSON-encoded: {"a":1}'):
        desk.call("recur.update", "1", "r", "throttles", '{"a":1}')
    assert json.loads(desk.call("recur.get", "1", "r"))["tags"] == {}


@pytest.mark.parametrize("jid", ["j", "nobody"])
def test_the_oldest_priority_without_a_value_says_so(jid: str) -> None:
    desk = desk_of()
    put(desk, "j")
    with pytest.raises(Raised, match=r'Priority\(\): Arg "priority" missing or not a number: nil'):
        script(desk, "priority", jid)
    with pytest.raises(Raised, match=r'Priority\(\): Arg "priority" missing or not a number: high'):
        script(desk, "priority", jid, "high")


def test_a_limit_of_concurrency_does_not_hold_for_the_oldest_pop() -> None:
    desk = desk_of()
    for jid in ("a", "b", "c"):
        put(desk, jid)
    desk.call("config.set", "1", "q-max-concurrency", "1")
    assert len(json.loads(desk.call("pop", "2", "q", "w", "3"))) == 1
    assert json.loads(desk.call("pop", "2", "q", "w", "3")) == {}
    assert len(script(desk, "pop", "q", "w", "3", "2", keys=1)) == 2
    assert picture(replayed(desk)) == picture(desk.memory)


def test_the_oldest_list_of_a_group_shows_no_dependencies() -> None:
    desk = desk_of()
    put(desk, "a")
    head = ("put", "q", "j", "klass", "{}")
    script(desk, *head, "2", "0", "depends", '["a"]', keys=1)
    script(desk, *head, "3", "1", keys=1)  # a delay lets it go, and it still needs the other
    script(desk, "pop", "q", "w", "2", "5", keys=1)
    script(desk, "fail", "j", "w", "g", "m", "6")
    assert json.loads(script(desk, "get", "j"))["dependencies"] == ["a"]
    [failed] = json.loads(script(desk, "failed", "g"))["jobs"]
    assert failed["jid"] == "j" and failed["dependencies"] == {}
