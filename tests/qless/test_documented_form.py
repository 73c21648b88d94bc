"""Conflicts between the original protocol document and its code (qless.md section 0). FCALL follows the document;
scripts that a client loads follow the recordings."""

import json
from typing import Any

import pytest

from tests.support.qless_connection import QlessConnection, T
from tests.support.resp_values import read


@pytest.fixture
def qless() -> QlessConnection:
    qless = QlessConnection()
    ask(qless, "put", "q", "j", "klass", '{"a": 1}', T, "0", keys=1)
    return qless


def ask(qless: QlessConnection, script: str, *words: str, keys: int = 0) -> Any:
    """The reply; JSON is decoded."""
    (reply,) = read(qless.ask("FCALL", script, str(keys), *words))
    return _said(reply)


def _said(reply: Any) -> Any:
    if isinstance(reply, list):
        return [_said(each) for each in reply]
    if not isinstance(reply, bytes):
        return reply
    text = reply.decode()
    return json.loads(text) if text[:1] in ("{", "[") else text


def later(seconds: float) -> str:
    return repr(float(T) + seconds)


def pop(qless: QlessConnection) -> Any:
    return ask(qless, "pop", "q", "w", "1", T, keys=1)


def test_statistics_have_the_members_of_document_and_code(qless: QlessConnection) -> None:
    for jid, wait in (("k", 1.0), ("l", 4.0)):
        ask(qless, "put", "r", jid, "klass", "{}", T, "0", keys=1)
        ask(qless, "pop", "r", "w", "1", later(wait), keys=1)
    wait = ask(qless, "stats", "r", T)["wait"]
    assert {name: wait[name] for name in ("count", "total", "mean")} == {"count": 2, "total": 2, "mean": 2.5}
    assert wait["variance"] == 4.5 == pytest.approx(wait["std"] ** 2)
    assert len(wait["histogram"]) == 148


def test_a_failure_shows_its_type_and_message_beside_the_job(qless: QlessConnection) -> None:
    pop(qless)
    assert ask(qless, "fail", "j", "w", "group", "because", T) == "j"
    (job,) = ask(qless, "failed", "group")["jobs"]
    assert (job["type"], job["message"], job["klass"]) == ("group", "because", "klass")
    assert {"group": "group", "message": "because", "worker": "w"}.items() <= job["failure"].items()
    assert ask(qless, "failed") == {"group": 1}


def test_the_type_of_a_job_is_its_klass_and_its_states_are_the_codes(qless: QlessConnection) -> None:
    ask(qless, "put", "q", "late", "klass", "{}", T, "60", keys=1)
    ask(qless, "put", "q", "dep", "klass", "{}", T, "0", "depends", '["j"]', keys=1)
    jobs = {jid: ask(qless, "get", jid) for jid in ("j", "late", "dep")}
    assert {jid: job["state"] for jid, job in jobs.items()} == {"j": "waiting", "late": "scheduled", "dep": "depends"}
    assert all(job["klass"] == "klass" and "type" not in job for job in jobs.values())


def test_track_tags_its_job(qless: QlessConnection) -> None:
    assert ask(qless, "track", "track", "j", T, "red", "blue") == 1
    assert ask(qless, "get", "j")["tags"] == ["red", "blue"]
    assert ask(qless, "tag", "get", "red") == {"jobs": ["j"], "total": 1}
    assert ask(qless, "track", "untrack", "j", T, "green") == 1
    assert ask(qless, "track", "track", "absent", T, "red") == 1
    assert ask(qless, "tag", "get", "green")["total"] == 0
    assert ask(qless, "tag", "get", "red")["total"] == 1


def test_priority_and_others_return_nil_for_a_missing_job(qless: QlessConnection) -> None:
    assert ask(qless, "priority", "absent", "5") is None
    assert ask(qless, "priority", "j", "5") == 5
    assert ask(qless, "unfail", T, "nothing", "q") == 0
    assert ask(qless, "fail", "j", "w", "group", "message", T) is None, "it is not running"


def test_heartbeat_returns_an_integer_or_nil(qless: QlessConnection) -> None:
    assert ask(qless, "heartbeat", "j", "w", T) is None
    pop(qless)
    assert ask(qless, "heartbeat", "j", "w", T) == int(float(T)) + 60


def test_queues_count_dependent_and_recurring_jobs_too(qless: QlessConnection) -> None:
    told = {"name": "q", "waiting": 1, "stalled": 0, "running": 0, "scheduled": 0, "depends": 0, "recurring": 0}
    assert ask(qless, "queues", T) == [told]


@pytest.mark.parametrize(
    ("script", "words", "text"),
    [
        ("retry", ("j", "q", "w", "soon"), 'Retry(): Arg "now" missing'),
        ("heartbeat", ("j", "w", "soon"), 'Heartbeat(): Arg "now" missing'),
        ("unfail", ("soon", "group", "q"), 'Unfail(): Arg "now" missing'),
        ("depends", (), 'Depends(): Arg "jid" missing.'),
        ("recur", ("on",), 'Recur(): Arg "queue" missing'),
        ("recur", ("on", "q", "r", "k", "{}", "x"), 'Recur(): Arg "now" missing or not a number: x'),
        ("recur", ("on", "q", "r", "k", "{}", "1"), 'Recur(): Arg "schedule type" missing'),
        ("recur", ("on", "q", "r", "k", "{}", "1", "interval", "x"), 'Recur(): Arg "interval" must be a number: x'),
        (
            "recur",
            ("on", "q", "r", "k", "{}", "1", "interval", "0", "0", "tags", "[]"),
            'Recur(): Arg "interval" must be greater than or equal to 0',
        ),
        (
            "recur",
            ("on", "q", "r", "k", "{}", "1", "interval", "9", "0", "tags", "[]", "retries", "x"),
            'Recur(): Arg "retries" must be a number. Got: x',
        ),
    ],
)
def test_errors_of_the_per_script_form(qless: QlessConnection, script: str, words: tuple[str, ...], text: str) -> None:
    said = qless.ask("FCALL", script, "0", *words)
    assert said.decode() == f"-ERR user_function:1: {text} script: {script}, on @user_function:1.\r\n"


def test_depends_checks_its_argument_only_for_a_job_that_waits(qless: QlessConnection) -> None:
    assert ask(qless, "depends", "j", "perhaps") is None
    ask(qless, "put", "q", "dep", "klass", "{}", T, "0", "depends", '["j"]', keys=1)
    assert b'Second arg must be "on" or "off"' in qless.ask("FCALL", "depends", "0", "dep", "perhaps")


def test_consistencycheck_is_not_a_function(qless: QlessConnection) -> None:
    assert qless.ask("FCALL", "consistencycheck", "0") == b"-ERR Function not found\r\n"
