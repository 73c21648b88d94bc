"""Check the recorded operations of all clients against the guarantees of a job server.

Every operation is recorded with the times of its request and of its reply. An operation without a reply is UNKNOWN: it
may or may not have been executed. The deliveries of one job are compared in the order in which they were received:

    lost          an acknowledged push whose job was not settled and does not exist at the end
    unexpected    a delivery of a job that was never pushed
    altered       a delivery whose payload differs from the one pushed
    resurrected   a delivery after an acknowledged ACK
    overlapping   a delivery while an earlier one was active: not failed, not settled, its lease not expired
    unexplained   any other second delivery without an explicit failure or a lease expiry before it
    torn          a transaction or bulk push without a reply that was executed in part
    refused       a settlement that was refused although the lease was neither settled nor expired

A lease that is bound to its connection ends when its client disconnects (LOST) or when the server is killed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from math import inf
from typing import NamedTuple


class Kind(Enum):
    PUSH = "push"
    FETCH = "fetch"
    ACK = "ack"
    FAIL = "fail"
    LOST = "lost"  #: the client disconnects on purpose


class Outcome(Enum):
    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Op(NamedTuple):
    kind: Kind
    client: str
    jid: str
    began: float  #: time of the request; all clients use one clock
    ended: float  #: time of the reply, or when the client gave up
    outcome: Outcome = Outcome.OK
    crc: int = 0  #: checksum of the payload that was pushed or delivered
    bulk: int = 0  #: number of the transaction or bulk push it belongs to
    bound: bool = False  #: a delivery whose lease ends with the connection
    lease_s: float = inf  #: length of the lease if it is shorter than the longest one


class Verdict(NamedTuple):
    lost: list[str]
    unexpected: list[str]
    altered: list[str]
    resurrected: list[str]
    overlapping: list[str]
    unexplained: list[str]
    torn: list[int]
    refused: list[str]
    redelivered: int  #: deliveries after the first of a job; all are explained if the lists are empty

    @property
    def faults(self) -> dict[str, int]:
        """Number of violations by kind; empty if there are none."""
        return {name: len(found) for name, found in self._asdict().items() if isinstance(found, list) and found}


def account(
    ops: Iterable[Op], present: Collection[str], *, lease_s: float = 1_800.0, kills: Sequence[float] = ()
) -> Verdict:
    """Compare the operations with the guarantees.

    `present` names the jobs that exist after the last operation. `kills` are the times at which the server was dead.
    """
    by_job: dict[str, dict[Kind, list[Op]]] = defaultdict(lambda: {kind: [] for kind in Kind})
    for op in ops:
        by_job[op.jid][op.kind].append(op)
    verdict = Verdict([], [], [], [], [], [], [], [], 0)
    bulks: dict[int, set[bool]] = defaultdict(set)
    redelivered = 0
    for jid, did in by_job.items():
        pushes = [op for op in did[Kind.PUSH] if op.outcome is not Outcome.REFUSED]
        fetches = sorted((op for op in did[Kind.FETCH] if op.outcome is Outcome.OK), key=lambda op: op.ended)
        if fetches and not pushes:
            verdict.unexpected.append(jid)
            continue
        if any(fetch.crc not in {push.crc for push in pushes} for fetch in fetches):
            verdict.altered.append(jid)
        settled = any(ack.outcome is not Outcome.REFUSED for ack in did[Kind.ACK])
        if any(push.outcome is Outcome.OK for push in pushes) and not settled and jid not in present:
            verdict.lost.append(jid)
        for push in pushes:
            if push.bulk and push.outcome is Outcome.UNKNOWN:
                bulks[push.bulk].add(bool(fetches) or jid in present)
        for ack in did[Kind.ACK]:
            if ack.bulk and ack.outcome is Outcome.UNKNOWN:
                bulks[ack.bulk].add(jid not in present and not any(fetch.ended > ack.ended for fetch in fetches))
        redelivered += max(0, len(fetches) - 1)
        _check_repeats(verdict, did, fetches, lease_s, kills)
        if any(_was_refused_wrongly(op, did, fetches, lease_s) for kind in (Kind.ACK, Kind.FAIL) for op in did[kind]):
            verdict.refused.append(jid)
        acked = [ack.ended for ack in did[Kind.ACK] if ack.outcome is Outcome.OK]
        if acked and jid in present:
            verdict.resurrected.append(jid)
    verdict.torn.extend(bulk for bulk, seen in bulks.items() if len(seen) > 1)
    verdict.unexpected.extend(set(present) - by_job.keys())
    return verdict._replace(redelivered=redelivered)


def _check_repeats(
    verdict: Verdict, did: dict[Kind, list[Op]], fetches: list[Op], lease_s: float, kills: Sequence[float]
) -> None:
    for first, second in pairwise(fetches):
        mine = [op for kind in (Kind.ACK, Kind.FAIL, Kind.LOST) for op in did[kind] if _ends(op, first, second)]
        if any(op.kind is Kind.ACK and op.outcome is Outcome.OK for op in mine):
            verdict.resurrected.append(first.jid)
        elif any(op.kind is not Kind.ACK for op in mine) or _was_over(first, second, lease_s, kills):
            continue
        elif mine:
            verdict.unexplained.append(first.jid)
        else:
            verdict.overlapping.append(first.jid)


def _was_over(first: Op, second: Op, lease_s: float, kills: Sequence[float]) -> bool:
    """Whether the first delivery's lease had expired or ended with its connection when the second was received."""
    killed = first.bound and any(first.began <= dead <= second.ended for dead in kills)
    return killed or second.ended - first.began >= min(lease_s, first.lease_s)


def _ends(op: Op, first: Op, second: Op) -> bool:
    """Whether this settles the first delivery and was sent before the second was received."""
    return op.client == first.client and op.outcome is not Outcome.REFUSED and first.ended <= op.began <= second.ended


def _was_refused_wrongly(op: Op, did: dict[Kind, list[Op]], fetches: list[Op], lease_s: float) -> bool:
    """Whether a settlement was refused although its worker still held the lease, as far as the worker could know."""
    if op.outcome is not Outcome.REFUSED:
        return False
    mine = [fetch for fetch in fetches if fetch.client == op.client and fetch.ended <= op.began]
    if not mine or op.ended - mine[-1].began >= min(lease_s, mine[-1].lease_s):
        return False
    return not any(
        other.client == op.client and other.outcome is not Outcome.REFUSED and mine[-1].ended <= other.began < op.began
        for kind in (Kind.ACK, Kind.FAIL)
        for other in did[kind]
    )


def held_by_two(ops: Sequence[Op], names: Mapping[str, str]) -> list[str]:
    """Unique names under which a second job was accepted while the first one existed.

    A job certainly exists if it was pushed and its ACK was not yet sent. `names` maps a jid to its unique name.
    """
    lives: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    acks = {op.jid: op.began for op in reversed(ops) if op.kind is Kind.ACK}
    for op in ops:
        if op.kind is Kind.PUSH and op.outcome is Outcome.OK and op.jid in names:
            lives[names[op.jid]].append((op.began, op.ended, acks[op.jid]))
    wrong = []
    for name, jobs in lives.items():
        for _, ended, acked in jobs:
            wrong += [name for began, later, _ in jobs if began > ended and later < acked]
    return wrong
