"""Log lines: one line per event in both formats, whatever a client sends, and a limit on repeated events."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock import logs
from crossdock.logs import EVENTS_A_SECOND, VALUE_CHARS, JsonFormatter, LogOptions, RateLimit, TextFormatter

LOG = logging.getLogger("crossdock.test_logs")

#: Characters that end a line for some reader, or that a terminal obeys.
HOSTILE = "\n\r\x0b\x0c\x1b\x00\x7f\x85\x9b\u2028\u2029\u202e\u2066\ufeff"
texts = st.text(st.characters() | st.sampled_from(HOSTILE + '"\\= '), max_size=300)
values = texts | st.integers() | st.floats() | st.booleans() | st.binary(max_size=300) | st.none()
fields = st.dictionaries(st.sampled_from(["worker", "job", "queue", "peer", "ts", "level", "event", "msg"]), values)


def record(sentence: str, members: dict[str, Any], error: BaseException | None = None) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    made = logging.LogRecord("crossdock", logging.WARNING, __file__, 1, "%s", (sentence,), info)
    made.event, made.fields = "lease-expired", members
    return made


@given(texts, fields)
def test_a_text_line_has_no_character_that_breaks_it(sentence: str, members: dict[str, Any]) -> None:
    line = TextFormatter().format(record(sentence, members))
    assert not set(line) & set(HOSTILE)
    assert len(line.splitlines()) == 1
    line.encode()  # no lone surrogate


@given(texts, fields)
def test_a_json_line_is_one_object_with_the_reserved_members(sentence: str, members: dict[str, Any]) -> None:
    line = JsonFormatter("web").format(record(sentence, members))
    assert line.isascii() and line.isprintable()
    read = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert list(read)[:4] == ["ts", "level", "event", "msg"]
    assert (read["level"], read["event"], read["process"]) == ("warning", "lease-expired", "web")
    assert all(len(value) <= VALUE_CHARS for name, value in read.items() if isinstance(value, str) and name != "msg")


def test_fields_follow_the_sentence_as_text() -> None:
    members = {"worker": "w 1", "job": "a=b", "queue": "mail", "n": 3, "on": True, "empty": "", "none": None}
    line = TextFormatter().format(record("the lease expired", members))
    assert line.split("Z WARNING ")[1] == (
        'the lease expired event=lease-expired worker="w 1" job="a=b" queue=mail n=3 on=true empty=""'
    )


def test_a_value_cannot_forge_a_field() -> None:
    line = TextFormatter().format(record("sentence", {"worker": 'x" job="forged'}))
    assert line.endswith(' worker="x\\" job=\\"forged"')


def test_long_values_are_cut() -> None:
    read = json.loads(JsonFormatter().format(record("s" * 5_000, {"job": "j" * 5_000})))
    assert (read["job"], len(read["msg"])) == ("j" * (VALUE_CHARS - 1) + "…", logs.SENTENCE_CHARS)


def test_a_traceback_is_a_member_of_the_object_or_indented_lines() -> None:
    error = ValueError("first\n2026-11-18T10:00:00.000Z INFO forged")
    assert json.loads(JsonFormatter().format(record("failed", {}, error)))["traceback"].endswith("INFO forged")
    first, *others = TextFormatter().format(record("failed", {}, error)).splitlines()
    assert first.endswith("event=lease-expired")
    assert others and all(line.startswith("    ") for line in others)


def test_a_record_of_a_library_has_its_logger_as_event() -> None:
    made = logging.LogRecord("uvicorn.error", logging.INFO, __file__, 1, "started %d", (3,), None)
    read = json.loads(JsonFormatter().format(made))
    assert (read["event"], read["msg"]) == ("uvicorn.error", "started 3")


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, whose handlers and levels are restored."""
    root, own = logging.getLogger(), logging.getLogger("crossdock")
    handlers, levels = root.handlers[:], (root.level, own.level)
    yield root
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    own.setLevel(levels[1])


def test_configure_replaces_what_it_set_before(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(LogOptions("info", "text"))
    logs.configure(LogOptions("warning", "json"))
    assert logs.options() == LogOptions("warning", "json")
    logs.event(LOG, logging.INFO, "quiet", "not logged")
    logs.event(LOG, logging.WARNING, "loud", "logged", n=1)
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["event"] == "loud"


def test_libraries_log_no_details(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(LogOptions("info", "text"))
    logging.getLogger("uvicorn.error").info("a step of its start")
    assert capsys.readouterr().err == ""


@given(st.sampled_from(["debug", "info", "warning", "error"]), st.sampled_from(["text", "json"]))
def test_options_survive_the_way_to_a_child(level: str, form: Any) -> None:
    assert LogOptions.parse(str(LogOptions(level, form))) == LogOptions(level, form)


def test_repeated_events_are_limited_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    limit = RateLimit(lambda: now)
    with caplog.at_level(logging.INFO, "crossdock"):
        for _ in range(EVENTS_A_SECOND + 7):
            limit.event(LOG, logging.WARNING, "wrong-password", "wrong password")
        limit.event(LOG, logging.WARNING, "protocol-error", "another kind is counted apart")
        limit.report_dropped()
        assert len(caplog.records) == EVENTS_A_SECOND + 1
        now = 101.0
        limit.report_dropped()
        assert caplog.messages[-1] == "7 more wrong-password events were not logged"
        limit.report_dropped()
        limit.event(LOG, logging.WARNING, "wrong-password", "logged again")
    assert caplog.messages[-1] == "logged again"
    assert len(caplog.records) == EVENTS_A_SECOND + 3


def test_events_below_the_level_are_not_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    limit = RateLimit(lambda: now)
    with caplog.at_level(logging.ERROR, "crossdock"):
        for _ in range(EVENTS_A_SECOND + 7):
            limit.event(LOG, logging.INFO, "unknown-command", "unknown command")
        now = 102.0
        limit.report_dropped()
    assert not caplog.records
