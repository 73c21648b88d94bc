"""The lake's rows about operators: paused queues and the audit trail."""

from crossdock.lake.redaction import Payloads
from crossdock.model.events import Audited, QueuePaused
from tests.support.lake_rows import rows_of


def test_a_pause_has_the_reason_and_the_operator() -> None:
    given, bare = rows_of([QueuePaused(1.0, "mail", "the disk is full", "anna"), QueuePaused(2.0, "mail")], Payloads())
    assert (given["event"], given["queue"], given["why"], given["by_user"]) == (
        "queue-paused", "mail", "the disk is full", "anna",
    )  # fmt: skip
    assert (bare["queue"], bare["why"], bare["by_user"]) == ("mail", None, None)


def test_an_action_has_a_row_that_concerns_no_job() -> None:
    event = Audited(
        at=1.0, entry=1, user="anna", address="192.0.2.7", via="http", action="delete", target="states:dead", count=250
    )
    (row,) = rows_of([event], Payloads())
    filled = {name: value for name, value in row.items() if value is not None}
    del filled["seq"], filled["flush_epoch"]
    assert filled == {
        "at": 1.0, "event": "audited", "via": "http", "why": "delete", "detail": "states:dead",
        "by_user": "anna", "by_address": "192.0.2.7", "changed": 250,
    }  # fmt: skip
