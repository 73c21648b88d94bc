"""Values that random commands are made of: few enough to collide, enough to differ."""

from typing import Final

from crossdock.model.commands.core import LeaseTerms
from crossdock.model.job import Callback, Extra, FaktoryData, Form, LeaseBinding, Links, LockRelease, LockTerms, Spec
from crossdock.model.policies import Backoff, Disposition, LeaseExpiry, Policy
from crossdock.model.records import Per
from crossdock.model.states import State

#: States from which a job can be removed.
KEPT: Final = (
    State.SCHEDULED,
    State.BLOCKED,
    State.READY,
    State.LEASED,
    State.RETRYING,
    State.COMPLETE,
    State.FAILED,
    State.DEAD,
)

QUEUES: Final = ("default", "mail", "größe")
WORKERS: Final = ("", "w1", "w2", "w3")
VIAS: Final = ("faktory", "workq")

#: Policies that cover every path of a job through the engine.
RULES: Final = (
    Policy(25, 0, 0, Backoff.POLYNOMIAL, Disposition.DEAD),  # Faktory's default
    Policy(1, 0, 90.0, Backoff.POLYNOMIAL, Disposition.DEAD),
    Policy(0, 0, 1.0, Backoff.NONE, Disposition.GONE),  # Faktory `retry` 0
    Policy(-1, 0, 0, Backoff.NONE, Disposition.DEAD),  # Faktory `retry` below 0
    Policy(3, 0, 1e9, Backoff.QUARTIC, Disposition.GONE),
    Policy(2, 0, 0, Backoff.NONE, Disposition.DEAD, lease_expiry=LeaseExpiry.RETURN),
    Policy(1, 2, 60.0, Backoff.NONE, Disposition.FAILED, Disposition.COMPLETE, LeaseExpiry.RETURN, 2),  # as Workq's
    Policy(
        0, 0, 60.0, Backoff.NONE, Disposition.GONE, Disposition.GONE, LeaseExpiry.DROP
    ),  # as Workq's foreground jobs
    Policy(1, 0, 0, Backoff.QUARTIC, Disposition.DEAD_QUEUE, due_band=0),  # as Masenko's
    Policy(0, 0, 0, Backoff.QUARTIC, Disposition.DEAD_QUEUE, due_band=0),
    Policy(1, 0, 0, Backoff.QUARTIC, Disposition.FAILED, Disposition.COMPLETE),
)

TERMS: Final = (
    LeaseTerms(1_800.0, 60.0, 86_400.0),  # Faktory's
    LeaseTerms(60.0, 0.0, 3_600.0, registers=True),  # as Workq's
    LeaseTerms(30.0, 30.0, 30.0, LeaseBinding.CONNECTION),
    LeaseTerms(120.0, 60.0, 600.0, LeaseBinding.WORKER),  # as qless'
    LeaseTerms(float("inf"), float("inf"), float("inf"), LeaseBinding.CONNECTION),  # Masenko's
)

EXTRAS: Final = (None, None, Extra(b'{"a":1}'), Extra(b"", FaktoryData("2026-01-01T00:00:00Z", priority=True)))

#: Throttles of a configuration. The last two configure the same queue differently.
THROTTLES: Final = (
    (),
    (("default", 1, Per.QUEUE, 0.0),),
    (("default", 2, Per.QUEUE, 90.0), ("mail", 1, Per.WORKER, 0.0)),
    (("mail", 1, Per.WORKER, 45.0),),
)

#: Schedules by name. The reference knows them.
SCHEDULES: Final = {"often": "*/5 * * * *", "hourly": "0 * * * *", "nightly": "30 3 * * *"}


#: Links of scheduled jobs. Their times count from each run.
SCHEDULED_EXTRAS: Final = (
    None,
    Extra(links=Links(LockTerms("lock a", 4_000.0, LockRelease.SUCCESS), expires=600.0)),
    Extra(links=Links(LockTerms("lock b", 30.0, LockRelease.START))),
    Extra(links=Links(expires=20.0)),
)


def callback(group: str, call: Callback) -> Spec:
    extra = Extra(links=Links(callback_of=group, callback=call))
    return Spec(f"{call.name} of {group}", "mail", "call", b"", Form.NONE, 0, RULES[1], extra=extra)
