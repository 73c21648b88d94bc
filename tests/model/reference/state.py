"""The state of the reference model, and reads that scan and sort all jobs."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from crossdock.model.clock import Now
from crossdock.model.records import Schedule
from crossdock.model.states import State
from tests.model.reference.draws import NO_DRAWS, Draws
from tests.model.reference.jobs import DAY, Job, Lease, Queue, next_time
from tests.model.reference.records import Records, Throttle


@dataclass
class ReferenceState:
    jobs: dict[int, Job] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    records: Records = field(default_factory=Records)
    throttles: dict[str, Throttle] = field(default_factory=dict)
    schedules: dict[str, Schedule] = field(default_factory=dict)
    booked: list[tuple[str, int, str, float]] = field(default_factory=list)  #: queue, UTC day, what, value
    number: int = 0
    token: int = 0
    at: float = 0.0  #: time of the last change; never decreases
    epoch: int = 0
    first_token: int = 1
    processed: int = 0
    failures: int = 0
    evicted: int = 0
    woken: set[str] = field(default_factory=set)
    unblocked: list[int] = field(default_factory=list)  #: jobs whose last dependency this command met
    lost: list[int] = field(default_factory=list)  #: jobs that cannot succeed any more

    draws: Draws = NO_DRAWS  #: of the current command
    purge_hold: tuple[float, float] = (0.0, 0.0)  #: purges use the first steady time until the second one is reached

    def purge(self, now: Now) -> float:
        return self.purge_hold[0] if now.steady < self.purge_hold[1] else now.steady

    def ready(self, queue: str) -> list[Job]:
        """The ready jobs of a queue: higher priority first, then first come first served."""
        waiting = [job for job in self.jobs.values() if job.state is State.READY and job.queue == queue]
        return sorted(waiting, key=lambda job: (-job.spec.priority, job.band, job.stamp, job.number))

    def in_state(self, state: State) -> list[Job]:
        """The jobs in a state, sorted by the time that changes them."""
        there = [job for job in self.jobs.values() if job.state is state]
        return sorted(there, key=lambda job: (next_time(job), job.number))

    def due_in(self, now: Now) -> float | None:
        """Seconds until the next timed change; None if there is none."""
        waits = [job.due - now.wall for job in self.in_state(State.SCHEDULED)]
        waits += [
            next_time(job) - now.steady for state in (State.RETRYING, State.LEASED) for job in self.in_state(state)
        ]
        waits += [each.next - now.wall for each in self.schedules.values()]
        waits += [end - now.steady for end, _, _ in self._slots()]
        locks, *purges = self.records.ends()
        waits += [end - now.steady for end, _ in locks]
        ends = [end for each in purges for end, _ in each] + [job.waits for job in self.in_state(State.DEAD)]
        ends += [job.end for job in self.jobs.values() if job.end]
        waits += [
            end - now.steady if end <= self.purge(now) else max(end, self.purge_hold[1]) - now.steady for end in ends
        ]
        waits = [wait for wait in waits if wait < math.inf]
        return max(0.0, min(waits)) if waits else None

    def _slots(self) -> list[tuple[float, str, Lease]]:
        """The times at which leases stop counting for their throttle, throttle by throttle."""
        return [
            (job.lease.began + throttle.timeout_s, queue, job.lease)
            for queue, throttle in self.throttles.items()
            for job in sorted(self.jobs.values(), key=lambda job: job.lease.token if job.lease else 0)
            if throttle.timeout_s and job.lease and job.queue == queue and not job.lease.slot_over
        ]

    def _select(self, numbers: Iterable[int], states: Iterable[State]) -> list[Job]:
        there = [self.jobs[number] for number in dict.fromkeys(numbers) if number in self.jobs]
        return [job for job in there if job.state in states]

    def _advance_time(self, now: Now) -> float:
        self.at = max(self.at, now.wall)
        return self.at

    def _advance_past_ties(self) -> None:
        """Advances by the smallest step, so that a job joins the tail even if the clock has not moved."""
        self.at = math.nextafter(self.at, math.inf)

    def _register(self, name: str) -> None:
        self.queues.setdefault(name, Queue(self.at))

    def _book(self, job: Job, what: str, value: float) -> None:
        self.booked.append((job.queue, int(self.at // DAY), what, value))
