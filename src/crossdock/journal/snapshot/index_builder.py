"""Builds the indexes over the jobs of a snapshot: each with one sort instead of a million insertions."""

from collections import Counter
from collections.abc import Sequence

from crossdock.engine.index import lists
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.job_view import sort_key_of, state_index_key
from crossdock.engine.state import EngineState, Waiting
from crossdock.model.job import Job, Number, SortKey
from crossdock.model.states import HELD, INDEXED_STATES, LEASED, READY, RETRYING, SCHEDULED, State


class IndexBuilder:
    def __init__(self, state: EngineState) -> None:
        self._state = state
        self._ready: dict[str, list[SortKey]] = {}
        self._others: list[Job] = []  #: jobs that belong into more than the list of ready jobs

    def add(self, jobs: Sequence[Job]) -> None:
        """Add jobs to the tables by number and by jid."""
        self._state.jobs.adopt(jobs)
        self._state.jids.adopt(jobs)
        ready, others = self._ready, self._others
        for job in jobs:
            if job.state is READY:
                sort_keys = ready.get(job.queue)
                if sort_keys is None:
                    sort_keys = ready[job.queue] = []
                sort_keys.append(job.sort_key or sort_key_of(job))
                extra = job.extra
                if not job.end and (extra is None or (extra.links is None and not extra.held_by)):
                    continue
            others.append(job)

    def build(self) -> None:
        """Build the indexes, once all jobs, queues and records were added."""
        state = self._state
        by_state: dict[State, list[tuple[float, Number]]] = {job_state: [] for job_state in INDEXED_STATES}
        ends: list[tuple[float, Number]] = []
        for job in self._others:
            if job.lease is not None:
                by_state[job.state].append((job.lease.end, job.number))
            elif job.state is HELD and job.extra is not None and job.extra.resqu_batch:
                pass  # it is in the list of its batch
            elif job.state is not READY:
                by_state[job.state].append(state_index_key(job))
            if job.end:
                ends.append((job.end, job.number))
            if job.extra is not None and job.extra.links is not None:
                if job.extra.links.foreground:
                    state.foreground[job.number] = None
                lists.add_dependencies(state, job)
            lists.index(state, job)
        state.job_ends = SortedList(ends)
        for name, sort_keys in self._ready.items():
            state.queues[name].ready = SortedList(sort_keys)
        state.by_state = {job_state: SortedList(keys) for job_state, keys in by_state.items()}
        self._by_queue()

    def _by_queue(self) -> None:
        state, jobs = self._state, self._state.jobs
        waiting: dict[str, list[Waiting]] = {}
        for _, number in state.by_state[SCHEDULED]:
            job = jobs[number]
            waiting.setdefault(job.queue, []).append((-job.priority, job.due, number))
        state.scheduled_in = {name: SortedList(keys) for name, keys in waiting.items()}
        state.leased_in.update(Counter(jobs[number].queue for _, number in state.by_state[LEASED]))
        retrying: dict[str, list[tuple[float, Number]]] = {}
        for key in state.by_state[RETRYING]:
            retrying.setdefault(jobs[key[1]].queue, []).append(key)
        state.retrying_in = {name: SortedList(keys) for name, keys in retrying.items()}
