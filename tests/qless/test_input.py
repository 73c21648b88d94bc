"""Random input: each call has a reply or an error of the script, and the state can be stored."""

import json
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from crossdock.protocols.redis.qless import unified
from crossdock.protocols.redis.qless.arguments import QlessError
from crossdock.protocols.redis.qless.call import PHP, REQLESS, REQLESS_013, THROTTLES, UNIFIED, UNIFIED_2013, Dialect
from crossdock.protocols.redis.qless.perscript import dispatch as perscript
from tests.model import invariants
from tests.qless.replay import Line, QlessDispatcher
from tests.support.picture import picture
from tests.support.recovered_state import from_snapshot, replayed

NUMBERS: Final = [b"0", b"1", b"2", b"-5", b"0.5", b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"1e-300", b"0x10"]
NAMES: Final = [b"j", b"k", b"q", b"w", b"", b"x" * 300, b"a\0b", b"\xff\xfe", "ünï".encode(), b"all", b"get"]
TEXTS: Final = [b"{}", b"[]", b"null", b"[null]", b'["j","k"]', b'["\\ud800"]', b'{"a":[1]}', b"[1e999]", b"false"]
WORDS: Final = [b"priority", b"tags", b"retries", b"depends", b"next", b"delay", b"interval", b"backlog", b"queue"]
MORE: Final = [b"add", b"remove", b"top", b"on", b"off", b"track", b"untrack", b"running", b"complete", b"heartbeat"]


@pytest.mark.parametrize("dialect", [UNIFIED, UNIFIED_2013], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("seed", range(8))
def test_random_calls_raise_only_qless_errors(seed: int, dialect: Dialect) -> None:
    random, dispatcher, answer = Random(seed), QlessDispatcher(), unified.call_handler(dialect)
    pools = [NUMBERS, NUMBERS, NAMES, NAMES, TEXTS, WORDS, MORE]
    commands = [name.encode() for name in unified.COMMANDS]
    answered = 0
    for _ in range(3_000):
        if random.random() < 0.3:
            call = [b"put", b"5", b"w", b"q", random.choice([b"j", b"k"]), b"klass", b"{}", b"0"]
            call = call if dialect is UNIFIED else [*call[:2], *call[3:]]
            call += [random.choice(WORDS), random.choice([*NUMBERS, *TEXTS])]
        else:
            args = [random.choice(random.choice(pools)) for _ in range(random.randrange(9))]
            call = [random.choice(commands), random.choice([b"5", b"9", *NUMBERS]), *args]
        try:
            answer(dispatcher, [], call, dispatcher.tell)
            answered += 1
        except QlessError:
            pass
    assert answered > 500
    invariants.check(dispatcher.state)
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)


@pytest.mark.parametrize("seed", range(6))
def test_random_calls_of_the_per_script_form_raise_only_qless_errors(seed: int) -> None:
    random, dispatcher = Random(seed), QlessDispatcher()
    pools = [NUMBERS, NUMBERS, NAMES, TEXTS, WORDS, MORE]
    answered = 0
    for _ in range(3_000):
        script = random.choice(list(perscript.SCRIPTS))
        args = [random.choice(random.choice(pools)) for _ in range(random.randrange(9))]
        if script in ("put", "pop") and random.random() < 0.7:
            args = {"put": [b"j", b"klass", b"{}", b"5", b"0"], "pop": [b"w", b"1", b"6"]}[script]
        try:
            perscript.call_handler(script)(
                dispatcher, [b"q"] if script in ("put", "pop", "peek") else [], args, dispatcher.tell
            )
            answered += 1
        except QlessError:
            pass
    assert answered > 300
    invariants.check(dispatcher.state)
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)


def test_a_name_is_utf_8_and_limited_in_length() -> None:
    dispatcher = QlessDispatcher()
    with pytest.raises(QlessError, match="at most 255 bytes"):
        dispatcher.call("put", "1", "w", "q" * 256, "j", "k", "{}", "0")
    with pytest.raises(QlessError, match="must be UTF-8"):
        unified.call_handler(UNIFIED)(
            dispatcher, [], [b"put", b"1", b"w", b"\xff", b"j", b"k", b"{}", b"0"], dispatcher.tell
        )
    assert not dispatcher.state.jobs


def test_a_tag_of_recur_must_be_utf_8() -> None:
    dispatcher, recur = QlessDispatcher(), perscript.call_handler("recur")
    on = [b"on", b"q", b"j", b"k", b'"\xff"', b"1", b"interval", b"60", b"0", b"tags", b"[]"]
    assert recur(dispatcher, [], on, dispatcher.tell) == "j"
    with pytest.raises(QlessError, match="must be UTF-8"):
        recur(dispatcher, [], [b"tag", b"j", b"a", b"b", b"\xff"], dispatcher.tell)
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)


def test_data_may_be_any_bytes() -> None:
    dispatcher = QlessDispatcher()
    unified.call_handler(UNIFIED)(
        dispatcher, [], [b"put", b"1", b"w", b"q", b"j", b"k", b'"\xff"', b"0"], dispatcher.tell
    )
    assert next(dispatcher.state.named("j")).payload == b'"\xff"'


def test_a_full_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    dispatcher = QlessDispatcher()
    dispatcher.full = "the disk is full"
    with pytest.raises(QlessError, match="the disk is full"):
        dispatcher.call("put", "1", "w", "q", "j", "k", "{}", "0")


@pytest.mark.parametrize("time", ["nan", "inf", "1e300"])
def test_calls_that_store_a_time_refuse_an_invalid_one(time: str) -> None:
    dispatcher = QlessDispatcher()
    assert dispatcher.call("get", time, "j") is None
    with pytest.raises(QlessError, match='Arg "now" missing or not a number'):
        dispatcher.call("put", time, "w", "q", "j", "k", "{}", "0")


def test_keys_are_refused() -> None:
    dispatcher = QlessDispatcher()
    with pytest.raises(QlessError, match="No Keys should be provided"):
        unified.call_handler(UNIFIED)(dispatcher, [b"q"], [b"get", b"1", b"j"], dispatcher.tell)
    with pytest.raises(QlessError, match="Must provide a command"):
        unified.call_handler(UNIFIED)(dispatcher, [], [], dispatcher.tell)


def test_jobs_of_a_queue_with_an_empty_name_become_due_after_it_was_forgotten() -> None:
    dispatcher = QlessDispatcher()
    dispatcher.call("put", "1", "w", "", "j", "k", "{}", "1")
    dispatcher.call("queue.forget", "1", "")
    assert '"jid":"j"' in dispatcher.call("peek", "3", "", "1")
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)


@pytest.mark.parametrize(
    ("setting", "seconds"), [("0x10", 16), (" 16 ", 16), ("1_6", 60), ("\u0661", 60), ("0x1p9999", 60), ("soon", 60)]
)
def test_a_setting_is_a_number_where_the_scripts_treat_it_as_one(setting: str, seconds: int) -> None:
    dispatcher = QlessDispatcher()
    dispatcher.call("config.set", "1", "heartbeat", setting)
    dispatcher.call("put", "1", "w", "q", "j", "k", "{}", "0")
    assert f'"expires":{1 + seconds},' in dispatcher.call("pop", "1", "q", "w", "1")


def test_per_script_track_ignores_case() -> None:
    dispatcher, track = QlessDispatcher(), perscript.call_handler("track")
    perscript.call_handler("put")(dispatcher, [b"q"], [b"j", b"k", b"{}", b"1", b"0"], dispatcher.tell)
    assert track(dispatcher, [], [b"TRACK", b"j", b"1"], dispatcher.tell) == 1
    assert "j" in dispatcher.state.qless.watched
    with pytest.raises(QlessError, match='Unknown action "FOLLOW"'):
        track(dispatcher, [], [b"FOLLOW", b"j", b"1"], dispatcher.tell)


@pytest.mark.parametrize("change", [("recur.update", "20", "r", "retries", "4"), ("recur.tag", "20", "r", "x")])
def test_a_recurring_job_that_is_changed_leaves_its_queue_forgotten(change: tuple[str, ...]) -> None:
    dispatcher = QlessDispatcher()
    dispatcher.call("recur", "10", "q", "r", "klass", "{}", "interval", "60", "0")
    dispatcher.call("queue.forget", "11", "q")
    dispatcher.call(*change)
    assert dispatcher.call("queues", "21") == "{}"
    dispatcher.call("recur.update", "22", "r", "queue", "q")
    assert json.loads(dispatcher.call("queues", "23"))[0]["recurring"] == 1


def script(dispatcher: QlessDispatcher, name: str, *words: str, keys: int = 0) -> Any:
    """One call of the per-script form."""
    args = [word.encode() for word in words]
    return perscript.call_handler(name)(dispatcher, args[:keys], args[keys:], dispatcher.tell)


def test_a_per_script_recur_update_does_not_register_the_queue() -> None:
    """The script only stores the queue in the job. A pop there still finds its jobs."""
    dispatcher = QlessDispatcher()
    call = partial(script, dispatcher)
    call("recur", "on", "q", "r", "klass", "{}", "10", "interval", "60", "0", "tags", "[]")
    assert call("recur", "update", "r", "queue", "elsewhere") == 1
    assert [each["name"] for each in json.loads(call("queues", "20"))] == ["q"]
    assert json.loads(call("queues", "20", "elsewhere"))["recurring"] == 1
    [made] = call("pop", "elsewhere", "w", "1", "30", keys=1)
    assert json.loads(made)["jid"] == "r-1"
    invariants.check(dispatcher.state)


@pytest.mark.parametrize("then", [["put"], ["retag"], ["overwrite"], ["put", "retag"], ["put", "overwrite", "put"]])
def test_stale_tags_of_a_per_script_put_are_removed_with_the_job(then: list[str], tmp_path: Path) -> None:
    """Calls of other dialects may come in between. A snapshot cannot restore the tag entry of a removed job."""
    dispatcher = QlessDispatcher()
    for tag in ("x", "z"):
        script(dispatcher, "put", "q", "r-1", "klass", "{}", "1", "0", "tags", f'["{tag}"]', keys=1)
    assert dispatcher.call("tag", "2", "get", "x") == '{"jobs":["r-1"],"total":1}', "as the script leaves it"
    for act in then:
        if act == "put":
            dispatcher.call("put", "3", "w", "q", "r-1", "klass", "{}", "0", "tags", '["y"]')
            assert dispatcher.call("tag", "4", "get", "z") == '{"jobs":{},"total":0}'
        elif act == "retag":
            script(dispatcher, "put", "q", "r-1", "klass", "{}", "5", "0", "tags", '["x","v"]', keys=1)
        else:
            dispatcher.call("recur", "6", "q", "r", "klass", "{}", "interval", "60", "0", "tags", '["u"]')
            dispatcher.call("peek", "6", "q", "1")
    invariants.check(dispatcher.state)
    dispatcher.call("cancel", "7", "r-1")
    assert dispatcher.state.tags.since == {}
    invariants.check(dispatcher.state)
    assert picture(from_snapshot(dispatcher.state, tmp_path)) == picture(dispatcher.state)


def test_a_recurring_job_with_a_negative_time_is_not_listed() -> None:
    dispatcher = QlessDispatcher()
    for jid, t in (("before", "-5"), ("at", "0"), ("after", "5")):
        dispatcher.call("recur", t, "q", jid, "klass", "{}", "interval", "60", "0")
    assert dispatcher.call("jobs", "10", "recurring", "q") == ["at", "after"]
    assert dispatcher.call("jobs", "10", "recurring", "q", "1", "-1") == ["after"]


@pytest.mark.parametrize(
    ("dialect", "act"),
    [(UNIFIED, ("timeout", "j")), (REQLESS_013, ("timeout", "j")), (UNIFIED_2013, ("fail", "j", "another", "g", "m"))],
)
def test_a_job_in_its_grace_period_is_not_on_its_workers_list(dialect: Dialect, act: tuple[str, ...]) -> None:
    dispatcher = QlessDispatcher()
    dispatcher.dialect = dialect
    worker = [] if dialect.old else ["w"]
    dispatcher.call("put", "10", *worker, "q", "j", "klass", "{}", "0")
    dispatcher.call("pop", "11", "q", "w", "1")
    dispatcher.call("pop", "100", "q", "w", "1")
    dispatcher.call(act[0], "101", *act[1:])
    assert json.loads(dispatcher.call("workers", "102", "w")) == {"jobs": {}, "stalled": {}}


@pytest.mark.parametrize("dialect", [UNIFIED, UNIFIED_2013, THROTTLES, REQLESS_013, PHP, REQLESS])
def test_a_fractional_count_is_no_error_for_a_paused_queue(dialect: Dialect) -> None:
    dispatcher = QlessDispatcher()
    dispatcher.dialect = dialect
    pop, pause, empty = ("queue.pop", "queue.pause", "[]") if dialect.is_reqless else ("pop", "pause", "{}")
    dispatcher.call(pause, "1", "q")
    assert dispatcher.call(pop, "2", "q", "w", "1.5") == empty
    with pytest.raises(QlessError, match="not an integer"):
        dispatcher.call(pop, "2", "other", "w", "1.5")


def test_a_fractional_count_is_no_error_for_a_paused_queue_in_the_per_script_form() -> None:
    dispatcher = QlessDispatcher()
    dispatcher.call("pause", "1", "q")
    assert dispatcher.answer_script(Line("", ["q", "w", "1.5", "2"], {}, [], "pop", 1)) == {"array": []}
    assert "err" in dispatcher.answer_script(Line("", ["other", "w", "1.5", "2"], {}, [], "pop", 1))
