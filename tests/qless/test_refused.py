"""Refused calls publish nothing and do not change the job."""

import json
from typing import Any, Final

import pytest

from crossdock.model.commands.qless import SetPriority
from crossdock.protocols.redis.qless.arguments import QlessError
from crossdock.protocols.redis.qless.call import PHP, REQLESS_013, THROTTLES, UNIFIED, UNIFIED_2013, Dialect
from crossdock.protocols.redis.qless.perscript import dispatch as perscript
from tests.qless.replay import QlessDispatcher
from tests.support.picture import picture
from tests.support.recovered_state import replayed

DIALECTS: Final = [UNIFIED, UNIFIED_2013, THROTTLES, REQLESS_013, PHP]


def dispatcher_of(dialect: Dialect = UNIFIED) -> QlessDispatcher:
    dispatcher = QlessDispatcher()
    dispatcher.dialect = dialect
    return dispatcher


def put(dispatcher: QlessDispatcher, jid: str, *more: str, at: str = "1") -> Any:
    worker = [] if dispatcher.dialect.old else ["w"]
    return dispatcher.call("put", at, *worker, "q", jid, "klass", "{}", "0", *more)


def script(dispatcher: QlessDispatcher, name: str, *args: str, keys: int = 0) -> Any:
    """One call of the per-script form."""
    words = [arg.encode() for arg in args]
    return perscript.call_handler(name)(dispatcher, words[:keys], words[keys:], dispatcher.tell)


def job_of(dispatcher: QlessDispatcher, jid: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(dispatcher.call("get", "9", jid))
    return found


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_put_whose_tags_are_false_is_refused_and_publishes_nothing(dialect: Dialect) -> None:
    dispatcher = dispatcher_of(dialect)
    put(dispatcher, "j", "tags", '["red"]')
    dispatcher.published = []
    for jid in ("j", "k"):
        with pytest.raises(QlessError, match=r'Put\(\): Arg "tags" not JSONfalse'):
            put(dispatcher, jid, "tags", "false")
    assert dispatcher.published == []


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("option", ["retries", "priority"])
@pytest.mark.parametrize("value", ["inf", "-inf", "1e400", "-1e400"])
def test_a_put_with_infinite_retries_or_priority_is_refused(option: str, value: str, dialect: Dialect) -> None:
    dispatcher = dispatcher_of(dialect)
    put(dispatcher, "j", "tags", '["red"]')
    dispatcher.published = []
    for jid in ("j", "k"):
        with pytest.raises(QlessError, match=rf'Put\(\): Arg "{option}" not a number(: )?{value}'):
            put(dispatcher, jid, option, value)
    assert dispatcher.published == []
    assert job_of(dispatcher, "j")["tags"] == ["red"]
    assert dispatcher.call("get", "9", "k") is None


def test_an_infinite_priority_is_refused() -> None:
    dispatcher = dispatcher_of()
    put(dispatcher, "j", "priority", "3")
    with pytest.raises(QlessError, match=r'Priority\(\): Arg "priority" missing or not a number: 1e400'):
        dispatcher.call("priority", "1", "j", "1e400")
    with pytest.raises(QlessError, match=r'Priority\(\): Arg "priority" missing or not a number: inf'):
        script(dispatcher, "priority", "j", "inf")
    assert job_of(dispatcher, "j")["priority"] == 3


def test_an_infinite_priority_from_a_journal_is_shown() -> None:
    dispatcher = dispatcher_of()
    put(dispatcher, "j")
    dispatcher.do(SetPriority("qless", 1.0, next(dispatcher.state.named("j")).number, float("inf")))
    assert job_of(dispatcher, "j")["priority"] == float("inf")


@pytest.mark.parametrize("option", ["retries", "priority"])
def test_a_recurring_job_with_infinite_retries_or_priority_is_refused(option: str) -> None:
    dispatcher = dispatcher_of()
    with pytest.raises(QlessError, match=rf'Recur\(\): Arg "{option}" not a number: inf'):
        dispatcher.call("recur", "1", "q", "r", "klass", "{}", "interval", "60", "0", option, "inf")
    with pytest.raises(QlessError, match=rf'Recur\(\): Arg "{option}" must be a number. Got: 1e400'):
        script(
            dispatcher, "recur", "on", "q", "r", "k", "{}", "1", "interval", "60", "0", "tags", "[]", option, "1e400"
        )
    dispatcher.call("recur", "1", "q", "r", "klass", "{}", "interval", "60", "0")
    with pytest.raises(QlessError, match=rf'Recur\(\): Arg "{option}" must be a number: 1e400'):
        dispatcher.call("recur.update", "1", "r", option, "1e400")
    assert json.loads(dispatcher.call("recur.get", "1", "r"))[option] == 0


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    ("depends", "kind"), [('[["a"]]', "table"), ("[null]", "userdata"), ("[true]", "boolean"), ('["a",{}]', "table")]
)
def test_a_dependency_that_is_not_a_jid_is_an_error(depends: str, kind: str, dialect: Dialect) -> None:
    dispatcher = dispatcher_of(dialect)
    put(dispatcher, "a")
    put(dispatcher, "j", "tags", '["red"]')
    dispatcher.call("pop", "2", "q", "w", "2")
    before, dispatcher.published = job_of(dispatcher, "j"), []
    refusal = rf"attempt to concatenate local 'j' \(a {kind} value\)"
    for jid in ("j", "k"):
        with pytest.raises(QlessError, match=refusal):
            put(dispatcher, jid, "depends", depends, at="3")
    with pytest.raises(QlessError, match=refusal):
        dispatcher.call("complete", "4", "j", "w", "q", "{}", "next", "q2", "depends", depends)
    assert job_of(dispatcher, "j") == before, "the scripts leave it in no queue"
    assert dispatcher.call("get", "9", "k") is None and dispatcher.published == []


def test_a_dependency_that_is_not_a_jid_is_an_error_in_the_per_script_form() -> None:
    dispatcher = dispatcher_of()
    with pytest.raises(QlessError, match=r"attempt to concatenate local 'j' \(a table value\)"):
        script(dispatcher, "put", "q", "j", "klass", "{}", "1", "0", "depends", '[["a"]]', keys=1)
    assert dispatcher.call("get", "9", "j") is None


def test_a_put_that_only_this_server_refuses_keeps_the_tags_of_the_job() -> None:
    dispatcher = dispatcher_of()
    put(dispatcher, "j", "tags", '["red"]')
    for more in (["tags", json.dumps(["x"] * 1_001)], ["tags", json.dumps(["x" * 256])], ["retries", "inf"]):
        with pytest.raises(QlessError):
            put(dispatcher, "j", *more)
    assert job_of(dispatcher, "j")["tags"] == ["red"]
    assert json.loads(dispatcher.call("tag", "9", "get", "red"))["total"] == 1


def test_a_recurring_job_whose_tags_or_throttles_are_an_object_is_refused() -> None:
    dispatcher, head = dispatcher_of(THROTTLES), ("recur", "1", "q", "r", "klass", "{}", "interval", "60", "0")
    for option, said in (("tags", "must be JSON string array"), ("throttles", "not JSON array")):
        with pytest.raises(QlessError, match=rf'Recur\(\): Arg "{option}" {said}: {{"a":1}}'):
            dispatcher.call(*head, option, '{"a":1}')
        assert dispatcher.call("recur.get", "1", "r") is None
    with pytest.raises(QlessError, match=r'Recur\(\): Arg "tags" must be JSON-encoded array of string. Got: {"a":1}'):
        script(dispatcher, "recur", "on", "q", "r", "k", "{}", "1", "interval", "60", "0", "tags", '{"a":1}')
    dispatcher.call(*head, "tags", "{}", "throttles", "{}")
    with pytest.raises(QlessError, match=r'Recur\(\): Arg "throttles" is not JSON-encoded: {"a":1}'):
        dispatcher.call("recur.update", "1", "r", "throttles", '{"a":1}')
    assert json.loads(dispatcher.call("recur.get", "1", "r"))["tags"] == {}


@pytest.mark.parametrize("jid", ["j", "absent"])
def test_per_script_priority_without_a_value_is_an_error(jid: str) -> None:
    dispatcher = dispatcher_of()
    put(dispatcher, "j")
    with pytest.raises(QlessError, match=r'Priority\(\): Arg "priority" missing or not a number: nil'):
        script(dispatcher, "priority", jid)
    with pytest.raises(QlessError, match=r'Priority\(\): Arg "priority" missing or not a number: high'):
        script(dispatcher, "priority", jid, "high")


def test_max_concurrency_does_not_limit_a_per_script_pop() -> None:
    dispatcher = dispatcher_of()
    for jid in ("a", "b", "c"):
        put(dispatcher, jid)
    dispatcher.call("config.set", "1", "q-max-concurrency", "1")
    assert len(json.loads(dispatcher.call("pop", "2", "q", "w", "3"))) == 1
    assert json.loads(dispatcher.call("pop", "2", "q", "w", "3")) == {}
    assert len(script(dispatcher, "pop", "q", "w", "3", "2", keys=1)) == 2
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)


def test_per_script_failed_shows_no_dependencies() -> None:
    dispatcher = dispatcher_of()
    put(dispatcher, "a")
    head = ("put", "q", "j", "klass", "{}")
    script(dispatcher, *head, "2", "0", "depends", '["a"]', keys=1)
    script(dispatcher, *head, "3", "1", keys=1)  # the delay releases it although the dependency is open
    script(dispatcher, "pop", "q", "w", "2", "5", keys=1)
    script(dispatcher, "fail", "j", "w", "g", "m", "6")
    assert json.loads(script(dispatcher, "get", "j"))["dependencies"] == ["a"]
    [failed] = json.loads(script(dispatcher, "failed", "g"))["jobs"]
    assert failed["jid"] == "j" and failed["dependencies"] == {}
