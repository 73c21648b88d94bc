"""The checker finds each violation that a test puts into a history, and reports no other."""

import pytest

from tests.support.accounting import Kind, Op, Outcome, account

PUSH, FETCH, ACK, FAIL, LOST = Kind.PUSH, Kind.FETCH, Kind.ACK, Kind.FAIL, Kind.LOST
UNKNOWN, REFUSED = Outcome.UNKNOWN, Outcome.REFUSED


def op(kind: Kind, at: float, client: str = "a", outcome: Outcome = Outcome.OK, crc: int = 7, bulk: int = 0) -> Op:
    return Op(kind, client, "job", at, at + 0.5, outcome, crc, bulk)


@pytest.mark.parametrize(
    ("ops", "present"),
    [
        ([op(PUSH, 1), op(FETCH, 2), op(ACK, 3)], False),
        ([op(PUSH, 1)], True),
        ([op(PUSH, 1, outcome=UNKNOWN)], False),
        ([op(PUSH, 1, outcome=UNKNOWN)], True),
        ([op(PUSH, 1, outcome=UNKNOWN), op(FETCH, 2), op(ACK, 3)], False),
        ([op(PUSH, 1), op(FETCH, 2), op(ACK, 3, outcome=UNKNOWN)], False),  # it was executed
        ([op(PUSH, 1), op(FETCH, 2), op(ACK, 3, outcome=UNKNOWN)], True),  # it was not
        ([op(PUSH, 1), op(FETCH, 2), op(FAIL, 3), op(FETCH, 4, "b"), op(ACK, 5, "b")], False),
        ([op(PUSH, 1), op(FETCH, 2), op(FAIL, 3, outcome=UNKNOWN), op(FETCH, 4, "b"), op(ACK, 5, "b")], False),
        ([op(PUSH, 1), op(FETCH, 2), op(FETCH, 70, "b"), op(ACK, 71, "b")], False),  # the lease expired
        ([op(PUSH, 1), op(FETCH, 2, outcome=UNKNOWN), op(FETCH, 3), op(ACK, 4)], False),  # the lease was released
        # it was executed
        ([op(PUSH, 1), op(FETCH, 2), op(FAIL, 3, outcome=UNKNOWN), op(FAIL, 4, outcome=REFUSED)], True),
        ([op(PUSH, 1), op(FETCH, 2), op(FAIL, 70, outcome=REFUSED)], True),  # the lease expired
    ],
)
def test_allowed_histories_have_no_violation(ops: list[Op], present: bool) -> None:
    assert account(ops, {"job"} if present else set(), lease_s=60).faults == {}


@pytest.mark.parametrize(
    ("ops", "present", "fault"),
    [
        ([op(PUSH, 1)], False, "lost"),
        ([op(PUSH, 1), op(FETCH, 2)], False, "lost"),
        ([op(PUSH, 1), op(FETCH, 2), op(FAIL, 3)], False, "lost"),
        ([op(FETCH, 2), op(ACK, 3)], False, "unexpected"),
        ([op(PUSH, 1, outcome=REFUSED), op(FETCH, 2), op(ACK, 3)], False, "unexpected"),
        ([op(PUSH, 1), op(FETCH, 2, crc=8), op(ACK, 3)], False, "altered"),
        ([op(PUSH, 1), op(FETCH, 2), op(ACK, 3), op(FETCH, 4)], False, "resurrected"),
        ([op(PUSH, 1), op(FETCH, 2), op(ACK, 3)], True, "resurrected"),
        ([op(PUSH, 1), op(FETCH, 2), op(FETCH, 3, "b"), op(ACK, 4, "b")], False, "overlapping"),
        ([op(PUSH, 1), op(FETCH, 2), op(FETCH, 3, "b"), op(FAIL, 4), op(ACK, 5, "b")], False, "overlapping"),
        ([op(PUSH, 1), op(FETCH, 2), op(ACK, 3, outcome=UNKNOWN), op(FETCH, 4, "b"), op(ACK, 5)], False, "unexplained"),
        ([op(PUSH, 1), op(FETCH, 2), op(FAIL, 3, outcome=REFUSED)], True, "refused"),
        ([op(PUSH, 1), op(FETCH, 2), op(FAIL, 3), op(FETCH, 4), op(ACK, 5, outcome=REFUSED)], True, "refused"),
    ],
)
def test_each_violation_is_found(ops: list[Op], present: bool, fault: str) -> None:
    assert account(ops, {"job"} if present else set(), lease_s=60).faults == {fault: 1}


def test_an_ack_after_another_workers_ack_is_reported_with_its_cause() -> None:
    ops = [op(PUSH, 1), op(FETCH, 2), op(FETCH, 3, "b"), op(ACK, 4, "b"), op(FAIL, 5, outcome=REFUSED)]
    assert account(ops, set()).faults == {"overlapping": 1, "refused": 1}


BOUND = op(FETCH, 2)._replace(bound=True)


@pytest.mark.parametrize(
    "ops",
    [
        [BOUND, op(LOST, 3), op(FETCH, 4, "b")],
        [BOUND, op(FETCH, 11, "b")],
        [BOUND, op(ACK, 9.7, outcome=UNKNOWN), op(FETCH, 11, "b")],
    ],
)
def test_a_connection_lease_ends_with_its_connection(ops: list[Op]) -> None:
    """The server was killed at 10."""
    verdict = account([op(PUSH, 1), *ops, op(ACK, 20, "b")], set(), lease_s=60, kills=[10.0])
    assert (verdict.faults, verdict.redelivered) == ({}, 1)


@pytest.mark.parametrize(
    ("ops", "fault"),
    [
        ([BOUND, op(FETCH, 4, "b")], "overlapping"),
        ([BOUND, op(FETCH, 4, "b"), op(LOST, 5)], "overlapping"),
        ([BOUND, op(ACK, 3, outcome=UNKNOWN), op(FETCH, 4, "b")], "unexplained"),
        ([BOUND, op(ACK, 3), op(FETCH, 11, "b")], "resurrected"),
        ([op(FETCH, 2), op(FETCH, 11, "b")], "overlapping"),
    ],
)
def test_a_connection_lease_does_not_end_early_or_with_another_connection(ops: list[Op], fault: str) -> None:
    assert account([op(PUSH, 1), *ops, op(ACK, 20, "b")], set(), lease_s=60, kills=[10.0]).faults == {fault: 1}


def test_a_torn_transaction_is_found() -> None:
    """One job is settled and another pushed: both must be done or neither."""
    first = [op(PUSH, 1), BOUND, op(ACK, 3, outcome=UNKNOWN, bulk=1)]
    second = op(PUSH, 3, outcome=UNKNOWN, bulk=1)._replace(jid="part")
    assert account([*first, second], {"part"}).faults == {}
    assert account([*first, second], {"job"}).faults == {}
    assert account([*first, second], {"job", "part"}).faults == {"torn": 1}
    assert account([*first, second], set()).faults == {"torn": 1}


def test_an_unknown_job_at_the_end_is_found() -> None:
    assert account([op(PUSH, 1)], {"job", "stranger"}).unexpected == ["stranger"]


def test_a_torn_bulk_is_found() -> None:
    bulk = [
        Op(PUSH, "a", f"job-{n}", 1, 2, UNKNOWN, 7, bulk=number) for number in (1, 2, 3) for n in (number, number + 10)
    ]
    assert account(bulk, {"job-1", "job-11", "job-2"}).torn == [2]
