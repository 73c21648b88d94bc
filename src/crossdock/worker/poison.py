"""Jobs that end the process they run in.

A process that dies takes all its running jobs with it, and often nothing tells which of them is to blame. Each of them
is failed as a suspect. A suspect is then run alone, in a process of its own, so from the second time on the blame is
certain. A job that was running when a process died for the Nth time in a row is quarantined: failed without more tries.

The count travels with the job, in the text of its last failure. So it is right even if another worker gets the job.
"""

import re
import signal
from typing import Final

from crossdock.client.jobs import Failure, FetchedJob

#: Type of the failure of a suspect, and of a job that is quarantined.
DIED: Final = "ProcessDied"
QUARANTINED: Final = "Quarantined"

DEATHS_AT_MOST: Final = 3

_COUNT: Final = re.compile(r"process (\d{1,6}) time")


def deaths_of(job: FetchedJob) -> int:
    """How often in a row the job was running when its process died."""
    return deaths_in(job.failure)


def deaths_in(failure: Failure | None) -> int:
    if failure is None or failure.errtype not in (DIED, QUARANTINED):
        return 0
    found = _COUNT.search(failure.message)
    return int(found[1]) if found else 1


def died_message(cause: str, deaths: int, alone: bool) -> str:
    """The text of a failure. `alone`: no other job was running in the process."""
    blame = "" if alone else "; other jobs were running in it, so the next try runs alone"
    return f"{cause} while this job was running; the job has lost its process {deaths} time{_s(deaths)} in a row{blame}"


def quarantine_message(cause: str, deaths: int) -> str:
    return (
        f"{cause} while this job was running; the job has lost its process {deaths} time{_s(deaths)} in a row, so it "
        "is not tried again; correct the task, then retry the job with crossdock job retry"
    )


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def cause_of(returncode: int) -> str:
    """How a process ended, for a sentence."""
    if returncode < 0:
        hint = " (out of memory, or killed by someone)" if -returncode == getattr(signal, "SIGKILL", 9) else ""
        return f"the process was killed by {signal_name(-returncode)}{hint}"
    return f"the process ended with exit code {returncode}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
