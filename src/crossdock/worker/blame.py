"""What becomes of the jobs of a process that ended before it could report them."""

from crossdock.worker.poison import DIED, QUARANTINED, deaths_of, died_message, quarantine_message
from crossdock.worker.process import ChildProcess, HeldJob
from crossdock.worker.settling import Ack, Fail, Snooze
from crossdock.worker.table import RUNNING, SUCCEEDED


def settlement_of_lost(
    child: ChildProcess, held: HeldJob, state: int, cause: str, max_deaths: int
) -> Ack | Fail | Snooze:
    """`state` is what the table says about the job. `cause` is how the process ended."""
    if state == SUCCEEDED and not held.job.keep_result:
        return Ack(held, None)
    if state != RUNNING:
        how = "succeeded, but its result was lost" if state == SUCCEEDED else "failed, but its error was lost"
        return Fail(held=held, type=DIED, message=f"the task {how}: {cause} before the report arrived")
    if child.why:  # the supervisor ended it, for a reason that is not this job's
        return Snooze(held, 0.0, f"{child.why}, and this job was interrupted")
    blamed, stacks = blamed_for(child)
    if held not in blamed:
        return Snooze(held, 0.0, f"{cause} because of another job")
    deaths = deaths_of(held.job) + 1
    alone = len(blamed) == 1
    if deaths >= max_deaths and alone:
        return Fail(
            held=held, type=QUARANTINED, message=quarantine_message(cause, deaths), backtrace=stacks, final=True
        )
    return Fail(held=held, type=DIED, message=died_message(cause, deaths, alone), backtrace=stacks)


def blamed_for(child: ChildProcess) -> tuple[list[HeldJob], list[str]]:
    """The jobs that may have ended their process, and the stacks of its threads.

    After a fatal signal such as SIGSEGV the process wrote down which thread it hit.
    """
    running = [held for held in child.held if child.table.state(held.row) == RUNNING]
    thread, stacks = child.crashed_thread()
    if thread is not None:
        hit = [held for held in running if child.table.thread(held.row) == thread]
        if hit:
            return hit, stacks
    return running, stacks
