"""Invariants of the engine's state. They hold after every command (testing.md section 26)."""

from collections import Counter
from math import inf

from crossdock.engine.job_view import (
    blocked_key,
    dependencies_of,
    edges_of,
    group_of,
    held_key,
    listed_in,
    qless_data,
    state_index_key,
)
from crossdock.engine.state import EngineState
from crossdock.model.job import ResquData, SortKey
from crossdock.model.policies import DependencyLoss
from crossdock.model.records import Phase, RateScope
from crossdock.model.states import State


def check(state: EngineState) -> None:
    each_job_is_indexed_once(state)
    jids_lead_to_jobs(state)
    jobs_are_consistent(state)
    records_are_consistent(state)
    indexes_are_consistent(state)
    lazy_deadlines_are_consistent(state)
    lists_are_consistent(state)
    batches_are_consistent(state)
    buffers_are_consistent(state)


def each_job_is_indexed_once(state: EngineState) -> None:
    """Every job is in exactly one index, that of its state, under its own key. The indexes contain nothing else."""
    indexed: Counter[int] = Counter()
    for queue in state.queues.values():
        sort_keys = list(queue.ready)
        assert sort_keys == sorted(sort_keys)
        for sort_key in sort_keys:
            job = state.jobs[sort_key[4]]
            assert (job.state, job.queue, job.sort_key) == (State.READY, queue.name, sort_key)
            indexed[job.number] += 1
    for name, lane in state.resqu.lanes.items():
        assert list(lane) == sorted(lane)
        for (number,) in lane:
            job = state.jobs[number]
            assert (job.state, job.extra and job.extra.resqu_batch) == (State.HELD, name)
            indexed[number] += 1
    for job_state, index in state.by_state.items():
        keys = list(index)
        assert keys == sorted(keys)
        for key, number in keys:
            job = state.jobs[number]
            assert job.state is job_state
            assert key == (job.lease.end if job.lease else state_index_key(job)[0])
            indexed[number] += 1
    assert indexed == dict.fromkeys(state.jobs, 1)


def jids_lead_to_jobs(state: EngineState) -> None:
    found = [job.number for jid in state.jids for job in state.named(jid)]
    assert sorted(found) == sorted(state.jobs)
    for jid in state.jids:
        numbers = [job.number for job in state.named(jid)]
        assert numbers == sorted(numbers), "oldest first"
        assert {state.jobs[number].jid for number in numbers} == {jid}


def jobs_are_consistent(state: EngineState) -> None:
    counters = state.counters
    for number, job in state.jobs.items():
        assert number == job.number <= counters.number
        assert (job.lease is not None) == (job.state is State.LEASED)
        assert job.lease is None or (job.lease.token <= counters.token and job.sort_key is not None)
        assert job.attempts >= (job.state is State.LEASED)
        assert job.failures >= 0
        assert job.created <= counters.at
        assert job.since <= counters.at
    tokens = [job.lease.token for job in state.jobs.values() if job.lease]
    assert len(tokens) == len(set(tokens))


def records_are_consistent(state: EngineState) -> None:
    """Each record is listed once by the end of its time, and every lock belongs to a job or a connection."""
    ending = [(lock.end, lock.holder, name) for name, lock in state.locks.items() if lock.end < inf]
    assert list(state.lock_ends) == sorted(ending)
    assert list(state.batch_ends) == sorted((group.end, name) for name, group in state.batches.items())
    dated = {jid: track.until for jid, track in state.progress.items() if track.until < inf}
    assert list(state.progress_ends) == sorted((until, jid) for jid, until in dated.items())
    kept = {jid: outcome.until for jid, outcome in state.outcomes.items() if outcome.until < inf}
    assert list(state.outcome_ends) == sorted((until, jid) for jid, until in kept.items())
    ages = list(state.once.jids.values())
    assert ages == sorted(ages), "the oldest first"
    assert list(state.next_runs) == sorted((each.next, name) for name, each in state.schedules.items())
    reserved = {name for name, lock in state.locks.items() if not lock.holder}
    assert reserved == set(state.resqu.reserved)
    for name, lock in state.locks.items():
        if name in reserved:
            continue
        job = state.jobs[lock.holder]
        assert job.extra is not None
        assert job.extra.links is not None
        assert job.extra.links.lock is not None
        assert job.extra.links.lock.name == name
    throttles_are_consistent(state)
    rates_are_consistent(state)


def throttles_are_consistent(state: EngineState) -> None:
    """A configured throttle is held by leases. A named one is held by jids, or it is set or has pending jobs."""
    leases = {job.lease.token: job.queue for job in state.jobs.values() if job.lease}
    for name, throttle in state.throttles.items():
        assert name == throttle.name
        if throttle.queue:
            there = {token for token, queue in leases.items() if queue == throttle.queue}
            assert set(throttle.holders) <= there if throttle.timeout_s else set(throttle.holders) == there
            ends = [end for _, end in throttle.holders.values()]
            assert ends == sorted(ends)
        else:
            assert all(isinstance(holder, str) for holder in throttle.holders)
            assert throttle.holders or throttle.pending or throttle.end is not None
    assert all(owed > 0 for owed, _ in state.owed.values())
    pending = {name: each.pending for name, each in state.throttles.items() if each.pending}
    assert {name: {jid: t for t, jid in order} for name, order in state.pending.items()} == pending
    held_jobs = (job for job in state.jobs.values() if job.state is State.HELD)
    waiting = [job for job in held_jobs if not (job.extra and job.extra.resqu_batch)]
    held = [(job.queue, *held_key(job)) for job in waiting]
    assert sorted((name, *key) for name, order in state.held_in.items() for key in order) == sorted(held)


def rates_are_consistent(state: EngineState) -> None:
    """What waits for a rate limit is what the jobs say. A limit that can free a job has a timer."""
    index = state.rate_index
    assert all(key == rate.key for key, rate in state.rates.items())
    assert set(index.names) == {key for key, rate in state.rates.items() if rate.scope is RateScope.NAME}
    assert all(rate.level(rate.at) <= rate.count for rate in state.rates.values())
    held: dict[tuple[str, str], list[SortKey]] = {}
    freed: Counter[tuple[str, str]] = Counter()
    for job in state.jobs.values():
        key = job.extra.held_by if job.extra is not None else ""
        if key and job.state is State.HELD:
            assert job.sort_key is not None
            held.setdefault((key, job.queue), []).append(job.sort_key)
        elif key and job.state is State.READY:
            freed[key, job.queue] += 1
    waits = index.waits
    assert {each: list(wait.held) for each, wait in waits.items() if wait.held} == {
        each: sorted(keys) for each, keys in held.items()
    }
    assert {each: wait.freed for each, wait in waits.items() if wait.freed} == freed
    assert {(key, queue) for key, queues in index.uses.items() for queue in queues} == set(waits)
    assert all(index.uses.values())
    assert list(index.wakes) == sorted((wait.wake, *each) for each, wait in waits.items() if wait.wake < inf)
    for (key, _), wait in waits.items():
        rate = state.rates.get(key)
        if wait.held and (rate is None or (rate.scope is not RateScope.QUEUE and wait.freed < rate.count)):
            assert wait.wake < inf
            assert rate is None or wait.wake <= rate.when(wait.freed + 1.0) + 1e-6


def indexes_are_consistent(state: EngineState) -> None:
    """Every index equals what a scan of all jobs gives."""
    jobs = list(state.jobs.values())
    assert list(state.job_ends) == sorted((job.end, job.number) for job in jobs if job.end)
    edges = {(dependency, job.number) for job in jobs for dependency in edges_of(job)}
    postponed = [(dependency, number) for (dependency, _), each in state.unresolved.items() for number in each.waiting]
    known = [(dependency, number) for dependency, waiting in state.dependents.items() for number in waiting]
    known += [edge for edge in postponed if edge in edges]  # other dependents do not wait any more
    assert sorted(known) == sorted(edge for edge in edges if edge in postponed or edge[0] in state.jobs)
    assert all(dependency in state.jobs for dependency in state.dependents), "a dependency was removed"
    assert all(state.dependents.values())
    assert state.strict == Counter(
        dependency
        for dependency, each in state.dependents.items()
        for one in each
        if state.jobs[one].policy.lost is DependencyLoss.FAILS_TOO
    )
    assert all(each.waiting for each in state.unresolved.values())
    assert all(dependencies_of(job) for job in jobs if job.state is State.BLOCKED), "a blocked job has no dependencies"
    blocked = {
        (dependency, job.number) for job in jobs if job.state is State.BLOCKED for dependency in dependencies_of(job)
    }
    assert blocked <= set(known), "a dependency was removed"
    assert Counter(state.leased_in) == Counter(job.queue for job in jobs if job.state is State.LEASED)
    retrying = [job for job in jobs if job.state is State.RETRYING]
    assert {name: list(order) for name, order in state.retrying_in.items()} == {
        name: sorted(state_index_key(job) for job in retrying if job.queue == name)
        for name in {job.queue for job in retrying}
    }
    waiting = [job for job in jobs if job.state is State.SCHEDULED]
    assert {name: list(order) for name, order in state.scheduled_in.items()} == {
        name: sorted((-job.priority, job.due, job.number) for job in waiting if job.queue == name)
        for name in {job.queue for job in waiting}
    }
    ours = [job for job in waiting if job.extra is not None and type(job.extra.protocol_data) is ResquData]
    assert state.resqu.delayed == Counter(int(job.due) for job in ours)
    assert all(state.resqu.delayed.values())
    assert list(state.foreground) == [
        job.number
        for job in jobs
        if job.extra is not None and job.extra.links is not None and job.extra.links.foreground
    ]


def lazy_deadlines_are_consistent(state: EngineState) -> None:
    """Lazy deadlines are indexed by both clocks, and no timer has them."""
    jobs = list(state.jobs.values())
    leased = [(job, job.lease) for job in jobs if job.lease is not None]
    by_time = [(job, qless_data(job)) for job in jobs if job.state in (State.SCHEDULED, State.RETRYING)]
    waiting = [
        (job, protocol_data.due)
        for job, protocol_data in by_time
        if protocol_data is not None and protocol_data.due is not None
    ]
    names = {job.queue for job, lease in leased if lease.until is not None or lease.late is not None}
    names |= {job.queue for job, _ in waiting} | {each.queue for each in state.qless.intervals.values()}
    assert set(state.lazy.queues) == names
    for name, lazy in state.lazy.queues.items():
        here = [(job, lease) for job, lease in leased if job.queue == name]
        ends = [(lease.until, job.jid, job.number) for job, lease in here if lease.until is not None]
        assert list(lazy.locks) == sorted(ends)
        assert list(lazy.late) == sorted((lease.late, job.number) for job, lease in here if lease.late is not None)
        due = [(job, at) for job, at in waiting if job.queue == name]
        assert list(lazy.due) == sorted((at, job.jid, job.number) for job, at in due)
        assert list(lazy.due_at) == sorted((job.due, job.number) for job, _ in due)
        slots = [each for each in state.qless.intervals.values() if each.queue == name]
        own = [each for each in slots if each.by_server]
        assert all(each.next == each.next_at for each in own)
        assert list(lazy.slots.own) == sorted((each.next_at, each.jid) for each in own)
        assert list(lazy.slots.callers) == sorted((each.next, each.jid) for each in slots if not each.by_server)
        assert list(lazy.slots.at) == sorted((each.next_at, each.jid) for each in slots)
        assert lazy.alarm == state.lazy.lates.at.get(name, inf)
    assert all(lease.end == inf for _, lease in leased if lease.late is not None)


def lists_are_consistent(state: EngineState) -> None:
    """The lists of qless equal what a scan of all jobs gives: tags, failure groups, completed and blocked jobs."""
    jobs = list(state.jobs.values())
    of_qless = [(job, protocol_data) for job in jobs if (protocol_data := qless_data(job)) is not None]
    done = [(protocol_data.time, job.jid, job.number) for job, protocol_data in of_qless if job.state is State.COMPLETE]
    assert list(state.qless.completed) == sorted(done)
    failed = [
        (group_of(job), protocol_data.order, job.number) for job, protocol_data in of_qless if job.state is State.FAILED
    ]
    assert sorted((group, *key) for group, order in state.qless.failed_in.items() for key in order) == sorted(failed)
    assert all(state.qless.failed_in.values())
    ended = [(listed_in(job), job.number) for job in jobs if job.state in (State.FAILED, State.DEAD)]
    assert sorted((group, key[1]) for group, order in state.failures.groups.items() for key in order) == sorted(ended)
    assert all(state.failures.groups.values())
    blocked = [(job.queue, *blocked_key(job)) for job in jobs if job.state is State.BLOCKED]
    assert sorted((name, *key) for name, order in state.blocked_in.items() for key in order) == sorted(blocked)
    stale_listings = [*state.qless.stale_listings.failed, *state.qless.stale_listings.done]
    assert {each for found in state.qless.stale_listings.jobs.values() for each in found} == set(stale_listings)
    assert all(number in state.jobs for number in state.qless.stale_listings.jobs)
    stray_entries = state.qless.stray_entries
    lists = [
        order
        for orders in (stray_entries.locks, stray_entries.work, stray_entries.depends)
        for order in orders.values()
    ]
    left = {key[-1] for order in lists for key in order}
    assert left == set(stray_entries.jobs) <= set(state.jobs)
    real = {(job.queue, job.sort_key) for job in jobs if job.state is State.READY}
    assert real.isdisjoint((name, sort_key) for name, order in stray_entries.work.items() for sort_key in order)
    tags = state.tags
    assert set(tags.since) == set(tags.jobs)
    for tag, since in tags.since.items():
        assert since
        assert list(tags.jobs[tag]) == sorted((t, state.jobs[number].jid, number) for number, t in since.items())
    assert list(tags.top) == sorted((uses, tag) for tag, uses in tags.uses.items() if uses)
    assert list(tags.unused) == [tag for tag, uses in tags.uses.items() if not uses]


def batches_are_consistent(state: EngineState) -> None:
    """A Resqu batch is uncommitted, waits for an allocator, is in a backlog, or is a lane, and nothing else."""
    resqu = state.resqu
    assert set(resqu.batches) == set(resqu.lanes)
    by_phase: dict[Phase, set[str]] = {phase: set() for phase in Phase}
    for name, batch in resqu.batches.items():
        assert name == batch.name
        by_phase[batch.phase].add(name)
        assert (batch.end == inf) is (batch.phase is not Phase.UNCOMMITTED)
        if batch.phase in (Phase.ACTIVE, Phase.BACKLOG) and not batch.by_hand:
            assert resqu.lanes[name], "a batch without jobs has ended"
    open_ones = [(batch.end, batch.name) for batch in resqu.batches.values() if batch.phase is Phase.UNCOMMITTED]
    assert list(resqu.batch_ends) == sorted(open_ones)
    assert set(resqu.active.values()) == by_phase[Phase.ACTIVE]
    assert len(resqu.active) == len(by_phase[Phase.ACTIVE])
    waiting = [name for names in resqu.backlogs.values() for name in names]
    assert sorted(waiting) == sorted(by_phase[Phase.BACKLOG])
    assert all(resqu.backlogs.values())
    for key in set(resqu.backlogs) - set(resqu.active):
        assert all(resqu.batches[name].by_hand for name in resqu.backlogs[key]), (
            "only batches of allocators wait without an active batch"
        )
    for queue in state.queues.values():
        here = {name for (pool, _), name in resqu.active.items() if pool == queue.name}
        assert set(queue.lanes or {""}) == here | {""}
        assert (queue.lanes is not None) is bool(here)
        for name, lane in (queue.lanes or {}).items():
            assert lane is (resqu.lanes[name] if name else queue.ready)


def buffers_are_consistent(state: EngineState) -> None:
    """Buffers and their jobs refer to each other, plans are listed by source, and deferred jobs wait for a lock."""
    resqu = state.resqu
    for number, key in resqu.in_buffer.items():
        assert resqu.buffers[key].number == number
    named = {buffer.number for buffer in resqu.buffers.values()}
    assert set(resqu.in_buffer) <= named
    plans = {(each.source, each.plan) for each in state.schedules.values() if each.plan}
    assert {(source, plan) for source, ids in resqu.plans.items() for plan in ids} == plans
    assert all(resqu.plans.values())
    assert set(resqu.deferred) <= set(state.locks)
    assert resqu.running <= set(state.locks)
