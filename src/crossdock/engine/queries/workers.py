"""Reads of the workers that give their name when they lease."""

from collections.abc import Mapping

from crossdock.engine.state import EngineState

_NOTHING: dict[str, float] = {}


def workers_seen(state: EngineState) -> Mapping[str, float]:
    """By worker: when it was last heard of, by callers' clocks."""
    return state.workers.seen


def workers_by_age(state: EngineState) -> list[tuple[float, str]]:
    """When each worker was last heard of, the most recent last."""
    return state.workers.recent


def leases_by_worker(state: EngineState) -> Mapping[str, dict[str, float]]:
    """By worker and jid: the end of the lease. An entry may outlive its lease."""
    return state.workers.given


def leases_of_worker(state: EngineState, worker: str) -> Mapping[str, float]:
    """By jid: the end of the lease."""
    return state.workers.given.get(worker, _NOTHING)
