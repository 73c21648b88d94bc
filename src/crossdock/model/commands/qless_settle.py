"""What qless' dialects say when they settle a job, beside what every protocol says. The defaults change nothing."""

import msgspec


class QlessSuccess(msgspec.Struct, frozen=True, gc=False):
    #: The run is counted in whole seconds, and freed dependents stand before others of their priority (the oldest).
    whole: bool = False
    under: str = ""  #: the queue on which it is booked, if another than the job's (old dialects)


class QlessFailure(msgspec.Struct, frozen=True, gc=False):
    said: bool = True  #: False: the failure is not recorded on the job unless this was its last try
    booked: str = ""  #: the queue on which it is booked, if another than the job's
    unbooked: bool = False  #: it is not counted if it was the last try (an old dialect)
    named: bool = False  #: its worker is recorded even if the failure is not (the oldest)
    quiet: bool = False  #: nothing is published if it was the last try (reqless)
