"""How jobs and attempts ended, for jobs of every protocol."""

from typing import Any, Final

import msgspec

from crossdock.pipeline.reports.tables import Reader

_COUNTS: Final = ("pushed", "attempts", "succeeded", "failed_attempts", "died", "retried", "again")


class Outcomes(msgspec.Struct):
    pushed: int = 0
    attempts: int = 0  #: leases that ended
    succeeded: int = 0  #: jobs
    failed_attempts: int = 0  #: failed, lost, expired or stalled
    died: int = 0  #: jobs that failed and were not tried again
    retried: int = 0  #: failures after which the job is tried again
    again: int = 0  #: jobs that succeeded after an earlier attempt had failed
    job_success: float | None = None  #: succeeded / (succeeded + died)
    attempt_success: float | None = None  #: successful attempts / attempts
    busy_s: float = 0.0  #: run time of all attempts
    wasted_s: float = 0.0  #: run time of failed attempts


def outcomes(reader: Reader, by: tuple[str, ...], where: str = "") -> dict[tuple[Any, ...], Outcomes]:
    """By these columns of `daily`; none: all together."""
    sums = ", ".join(f"sum({name}) AS {name}" for name in (*_COUNTS, "busy_s", "wasted_s"))
    key = "".join(f"{name}, " for name in by)
    group = f"GROUP BY {', '.join(by)}" if by else ""
    query = f"SELECT {key}{sums}, sum(attempt_success * attempts) AS good FROM daily WHERE {{here}} {group}"
    return {tuple(row[name] for name in by): _outcomes(row) for row in reader.rows("daily", query, where)}


def _outcomes(row: dict[str, Any]) -> Outcomes:
    found = Outcomes(
        **{name: row[name] or 0 for name in _COUNTS}, busy_s=row["busy_s"] or 0.0, wasted_s=row["wasted_s"] or 0.0
    )
    ended = found.succeeded + found.died
    found.job_success = found.succeeded / ended if ended else None
    found.attempt_success = (row["good"] or 0.0) / found.attempts if found.attempts else None
    return found
