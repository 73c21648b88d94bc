"""What must be true of a memory at any moment, whatever led to it."""

from collections import Counter
from math import inf

from crossdock.engine.memory import Memory, needs_of
from crossdock.model.states import State


def check(memory: Memory) -> None:
    each_job_stands_once(memory)
    names_lead_to_jobs(memory)
    jobs_are_whole(memory)
    records_are_whole(memory)
    indexes_are_whole(memory)


def each_job_stands_once(memory: Memory) -> None:
    """Every job is in exactly one order, the one of its state, under its own key; and nothing else is in any."""
    standing: Counter[int] = Counter()
    for queue in memory.queues.values():
        places = list(queue.ready)
        assert places == sorted(places)
        for place in places:
            job = memory.jobs[place[3]]
            assert (job.state, job.queue, job.place) == (State.READY, queue.name, place)
            standing[job.number] += 1
    for state, shelf in memory.shelves.items():
        keys = list(shelf)
        assert keys == sorted(keys)
        for key, number in keys:
            job = memory.jobs[number]
            assert job.state is state
            assert key == (job.lease.end if job.lease else job.due)
            standing[number] += 1
    assert standing == dict.fromkeys(memory.jobs, 1)


def names_lead_to_jobs(memory: Memory) -> None:
    found = [job.number for jid in memory.jids for job in memory.named(jid)]
    assert sorted(found) == sorted(memory.jobs)
    for jid in memory.jids:
        numbers = [job.number for job in memory.named(jid)]
        assert numbers == sorted(numbers), "oldest first"
        assert {memory.jobs[number].jid for number in numbers} == {jid}


def jobs_are_whole(memory: Memory) -> None:
    counters = memory.counters
    for number, job in memory.jobs.items():
        assert number == job.number <= counters.number
        assert (job.lease is not None) == (job.state is State.LEASED)
        assert job.lease is None or (job.lease.token <= counters.token and job.place is not None)
        assert job.attempts >= (job.state is State.LEASED)
        assert job.failures >= 0
        assert job.created <= counters.at
        assert job.since <= counters.at
    tokens = [job.lease.token for job in memory.jobs.values() if job.lease]
    assert len(tokens) == len(set(tokens))


def records_are_whole(memory: Memory) -> None:
    """Each record stands once among the ends of its kind, and no lock is held by a job that is gone."""
    assert list(memory.lock_ends) == sorted((lock.end, lock.holder, name) for name, lock in memory.locks.items())
    assert list(memory.group_ends) == sorted((group.end, name) for name, group in memory.groups.items())
    dated = {jid: track.until for jid, track in memory.tracks.items() if track.until < inf}
    assert list(memory.track_ends) == sorted((until, jid) for jid, until in dated.items())
    assert list(memory.recurring) == sorted((each.next, name) for name, each in memory.recurrences.items())
    for name, lock in memory.locks.items():
        job = memory.jobs[lock.holder]
        assert job.extra is not None
        assert job.extra.links is not None
        assert job.extra.links.lock is not None
        assert job.extra.links.lock.name == name
    leases = {job.lease.token: job.queue for job in memory.jobs.values() if job.lease}
    for queue, throttle in memory.throttles.items():
        there = {token for token, name in leases.items() if name == queue}
        assert set(throttle.holders) <= there if throttle.timeout_s else set(throttle.holders) == there
        ends = [end for _, end in throttle.holders.values()]
        assert ends == sorted(ends)


def indexes_are_whole(memory: Memory) -> None:
    """Whatever is kept beside the jobs is what looking at all of them gives."""
    jobs = list(memory.jobs.values())
    assert list(memory.job_ends) == sorted((job.end, job.number) for job in jobs if job.end)
    edges = {(need, job.number) for job in jobs if job.state is State.BLOCKED for need in needs_of(job)}
    assert {(need, number) for need, waiting in memory.needed_by.items() for number in waiting} == edges
    assert all(need in memory.jobs for need in memory.needed_by), "nobody waits for what is gone"
    assert all(needs_of(job) for job in jobs if job.state is State.BLOCKED), "nobody waits for nothing"
    assert Counter(memory.leased_in) == Counter(job.queue for job in jobs if job.state is State.LEASED)
    assert Counter(memory.retrying_in) == Counter(job.queue for job in jobs if job.state is State.RETRYING)
    waiting = [job for job in jobs if job.state is State.SCHEDULED]
    assert {name: list(order) for name, order in memory.scheduled_in.items()} == {
        name: sorted((-job.priority, job.due, job.number) for job in waiting if job.queue == name)
        for name in {job.queue for job in waiting}
    }
    assert list(memory.foreground) == [
        job.number
        for job in jobs
        if job.extra is not None and job.extra.links is not None and job.extra.links.foreground
    ]
