"""What the engine counts."""

from dataclasses import dataclass


@dataclass(slots=True)  # not a Struct: `at` is set at every event, which costs five times as much there
class Counters:
    """Plain numbers of the state; a snapshot keeps them as they are."""

    number: int = 0  #: the last job's
    token: int = 0  #: the last lease's
    at: float = 0.0  #: the last event's
    epoch: int = 0  #: how often the server has started
    first_token: int = 1  #: leases below it were given before this start
    processed: int = 0
    failures: int = 0
    evicted: int = 0  #: jobs whose time to live was over before they were finished, since this start
    failed: int = 0  #: the last failed job's `QlessFace.order`
    boot: str = ""  #: these four as the last `Started` has them
    offset: float = 0.0
    held_at: float = 0.0
    held_until: float = 0.0
