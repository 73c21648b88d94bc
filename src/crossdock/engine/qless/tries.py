"""What follows when the lease of a qless job ran out: the backoff of the PHP fork, and the failure of the last try."""

from crossdock.engine.job_view import qless_data
from crossdock.engine.jobs.retry_policy import FailureReport
from crossdock.engine.qless import history
from crossdock.engine.state import EngineState
from crossdock.model.commands.qless_settle import QlessFailure
from crossdock.model.job import Job, Lease
from crossdock.model.protocol_data import AS_CONFIGURED

#: A job that keeps failing is tried once a year at least.
BACKOFF_AT_MOST = 31_536_000.0

#: By what the wait of the PHP fork grows.
BACKOFF_FACTOR = 3.0


#: Nothing is recorded on the job but that it was tried.
UNSAID = QlessFailure(said=False)


def out_of_retries(job: Job, lease: Lease, via: str, t: float | None = None, text: str = "") -> FailureReport:
    """What qless says of a job whose lease ran out once too often."""
    protocol_data = qless_data(job)
    queue = protocol_data.queue if protocol_data is not None and protocol_data.queue else job.queue
    message = (text or 'Job exhausted retries in queue "%s"') % queue
    return FailureReport(
        via,
        lease.worker,
        f"failed-retries-{queue}",
        message,
        lost=True,
        t=t,
        qless=QlessFailure(False, named=bool(text)),
    )


def lapse_backoff(state: EngineState, job: Job, *, configured: bool = False) -> float:
    """How long a job of qless waits after its lease ran out; 0: it can be leased at once. `configured`: the settings of
    the PHP fork stand for what the job does not say."""
    protocol_data = qless_data(job)
    if protocol_data is None or (protocol_data.backoff is None and not configured):
        return 0.0
    first, factor = protocol_data.backoff or (AS_CONFIGURED, AS_CONFIGURED)
    if first < 0:
        first = history.number(state, "backoff-initial-delay", 0.0) if configured else 0.0
    if first <= 0:
        return 0.0
    if factor < 0:
        factor = history.number(state, "backoff-factor", BACKOFF_FACTOR)
    try:
        return min(BACKOFF_AT_MOST, first * factor ** (job.failures + 1))
    except OverflowError:
        return BACKOFF_AT_MOST
