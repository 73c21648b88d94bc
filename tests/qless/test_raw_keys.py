"""Keys that clients read without a script have the fields and members that the scripts store."""

from pathlib import Path
from typing import Any, Final

import pytest

from crossdock.engine.index import tags
from crossdock.protocols.redis.qless.call import REQLESS_013, UNIFIED, UNIFIED_2013, Dialect
from tests.qless.replay import QlessDispatcher
from tests.support.picture import picture
from tests.support.qless_connection import QlessConnection, T, bulk
from tests.support.recovered_state import from_snapshot, replayed

NONE: Final = b"$-1\r\n"


def field(qless: QlessConnection, name: str) -> bytes:
    return qless.ask("HGET", "ql:j:j", name)


def test_a_job_that_never_failed_has_no_failure_until_it_is_completed() -> None:
    qless = QlessConnection()
    qless.put("j")
    assert field(qless, "failure") == NONE
    qless.pop()
    assert field(qless, "failure") == NONE
    qless.call("complete", T, "j", "w", "q", "{}", "next", "q")
    assert field(qless, "failure") == bulk("{}")
    qless.pop()
    qless.call("complete", T, "j", "w", "q", "{}")
    assert field(qless, "failure") == bulk("{}")


def test_a_failed_job_has_an_empty_expiry_and_its_failure() -> None:
    qless = QlessConnection()
    qless.put("j")
    qless.pop()
    assert field(qless, "expires") not in (NONE, bulk(""), bulk("0"))
    qless.call("fail", T, "j", "w", "group", "message")
    assert field(qless, "expires") == bulk("")
    assert b'"group":"group"' in field(qless, "failure")
    qless.call("unfail", T, "q", "group")
    assert field(qless, "expires") == bulk("0")
    assert b'"group":"group"' in field(qless, "failure"), "it is kept"


def test_a_job_with_exhausted_retries_has_an_empty_expiry() -> None:
    qless = QlessConnection()
    qless.put("j", "retries", "0")
    qless.pop()
    qless.call("retry", T, "j", "q", "w")
    assert field(qless, "expires") == bulk("")


def test_a_tag_that_no_job_has_counts_zero() -> None:
    qless = QlessConnection()
    qless.put("j", "tags", '["red"]')
    qless.call("tag", T, "remove", "j", "red")
    assert qless.ask("ZSCORE", "ql:tags", "red") == bulk("0")
    assert qless.ask("EXISTS", "ql:t:red") == b":0\r\n"
    assert qless.call("tag", T, "top") == bulk("{}")
    qless.call("tag", T, "add", "j", "red")
    assert qless.ask("ZSCORE", "ql:tags", "red") == bulk("1")


def test_reqless_forgets_a_tag_that_no_job_has() -> None:
    qless = QlessConnection()
    qless.ask("FCALL", "reqless", "0", "queue.put", T, "w", "q", "j", "klass", "{}", "0", "tags", '["red"]')
    qless.ask("FCALL", "reqless", "0", "job.removeTag", T, "j", "red")
    assert qless.ask("ZSCORE", "ql:tags", "red") == NONE


@pytest.mark.parametrize("dialect", [UNIFIED, UNIFIED_2013, REQLESS_013], ids=lambda dialect: dialect.name)
def test_unused_tags_are_kept_in_order_and_limited(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tags, "UNUSED_AT_MOST", 3)
    dispatcher = QlessDispatcher()
    dispatcher.dialect = dialect
    worker: list[str] = [] if dialect.old else ["w"]
    dispatcher.call("put", "1", *worker, "q", "j", "klass", "{}", "0")
    names: list[Any] = [f"tag-{each}" for each in range(5)]
    dispatcher.call("tag", "2", "add", "j", *names)
    dispatcher.call("tag", "3", "remove", "j", *reversed(names))
    left = [] if dialect.throttled else ["tag-2", "tag-1", "tag-0"]
    assert list(dispatcher.state.tags.uses.items()) == [(each, 0) for each in left]
    again = from_snapshot(dispatcher.state, tmp_path)
    assert list(again.tags.unused) == list(dispatcher.state.tags.unused) == left
    assert picture(replayed(dispatcher)) == picture(again) == picture(dispatcher.state)
