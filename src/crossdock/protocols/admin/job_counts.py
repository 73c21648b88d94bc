"""Jobs by state, of all queues together."""

from crossdock.engine.queries.jobs import indexed_states, job_count
from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState


def jobs_by_state(state: EngineState) -> dict[str, int]:
    """Ready jobs are those that no other state counts. Jobs of a Resqu batch that is not active are held."""
    sizes = {job_state.name.lower(): len(index) for job_state, index in indexed_states(state).items()}
    sizes["held"] += queries.batched_count(state)
    return {"ready": job_count(state) - sum(sizes.values())} | sizes
