"""Numbers without an end, and whole ones that no double holds: each is refused in words, or shown as far as it goes."""

import json

import pytest

from crossdock.model.job import Form
from crossdock.model.moves import SetInterval
from crossdock.model.records import Interval
from crossdock.wire.redis.qless.call import Raised
from tests.qless.replay import QlessDesk


@pytest.mark.parametrize("backlog", ["inf", "-inf", "1e400", "-1e400", "nan"])
def test_a_backlog_without_an_end_is_refused(backlog: str) -> None:
    desk = QlessDesk()
    interval = ("recur", "1", "q", "r", "klass", "{}", "interval", "60", "0")
    desk.call(*interval)
    for refused in ((*interval, "backlog", backlog), ("recur.update", "1", "r", "backlog", backlog)):
        with pytest.raises(Raised, match=rf'Recur\(\): Arg "backlog" not a number: {backlog}'):
            desk.call(*refused)
    assert [job["jid"] for job in json.loads(desk.call("pop", "1", "q", "w", "1"))] == ["r-1"]


@pytest.mark.parametrize("backlog", [float("inf"), float("-inf"), -1e308])
def test_a_pop_takes_an_interval_of_a_journal_whose_backlog_has_no_end(backlog: float) -> None:
    desk = QlessDesk()
    desk.do(SetInterval(Interval("r", "q", "klass", b"{}", Form.JSON, 60, 1.0, 1.0, backlog=backlog), 1.0))
    popped = json.loads(desk.call("pop", "1000", "q", "w", "50"))
    assert len(popped) == (17 if backlog > 0 else 0), "below 0 it puts the next slot off"
    assert json.loads(desk.call("pop", "1000", "q", "w", "50")) == {}
