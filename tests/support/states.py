"""Engine states to store and compare, and the journal entries that lead to them."""

from random import Random
from typing import Any

import msgspec

from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.admin import Audit, PauseQueues
from crossdock.model.commands.core import Claim, Command, Enqueue, Fail, LeaseNext, LeaseTerms, Start, Succeed
from crossdock.model.events import AnyEvent
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from crossdock.model.job import Extra, FaktoryData, Form, Spec
from crossdock.model.policies import Backoff, Disposition, Policy

TERMS = LeaseTerms(default_s=1_800.0, least_s=60.0, most_s=86_400.0)
RULES = Policy(25, 0, 0, Backoff.POLYNOMIAL, Disposition.DEAD)
BEGIN = Now(1_794_765_345.0, 1_000.0)


def spec(jid: str, queue: str = "default", *, due: float = 0.0, priority: int = 0, payload: bytes = b"[1]") -> Spec:
    extra = Extra(b'{"a":1}', FaktoryData(at="later")) if due else None
    return Spec(jid, queue, "kind", payload, Form.JSON, priority, RULES, due, extra)


class Story:
    """An engine that keeps each step as the journal entry that a server would have written."""

    def __init__(self) -> None:
        self.engine = Engine(EngineState(), Random(1))
        self.now = BEGIN
        self.batches: list[bytes] = []

    @property
    def state(self) -> EngineState:
        return self.engine.state

    def do(self, command: Command[Any]) -> Any:
        events, outcome, _ = self.engine.decide(command, self.now)
        for event in events:
            self.engine.apply(event)
        if events:
            self.batches.append(self.batch(list(events)))
        self.now = Now(self.now.wall + 0.5, self.now.steady + 0.5)
        return outcome

    def batch(self, events: list[AnyEvent], version: int = EVENT_VERSION) -> bytes:
        return encode_entry(JournalEntry(version, self.now.wall, self.now.steady, events))

    def push(self, *jids: str, **fields: Any) -> None:
        self.do(Enqueue("faktory", [spec(jid, **fields) for jid in jids]))

    def lease(self, queue: str = "default", worker: str = "w") -> Any:
        return self.do(LeaseNext("faktory", (queue,), worker, TERMS))


def eventful() -> Story:
    """Jobs in every state the engine has, two queues, one of them paused, and statistics."""
    story = Story()
    story.do(Start())
    story.push(*(f"ready-{i:04d}" for i in range(40)), priority=1)
    story.push("scheduled-1", "scheduled-2", due=BEGIN.wall + 86_400)
    story.push("other-001", "other-002", queue="other")
    for _ in range(6):
        story.lease()
    for i in range(2):
        story.do(Succeed(f"ready-{i:04d}", Claim("faktory", "w")))
    story.do(Fail("ready-0002", Claim("faktory", "w"), "Group", "message", ("a", "b")))
    story.push("poison-001", queue="third")
    for _ in range(3):
        story.lease("third")
    story.do(PauseQueues(["other"], reason="a reason", user="anna"))
    story.do(Audit("anna", "local", "admin", "pause", "names:other", 1))
    return story


def picture(state: EngineState) -> dict[str, Any]:
    """The complete state as plain values that can be compared."""
    return {
        "jobs": {number: msgspec.to_builtins(job) for number, job in sorted(state.jobs.items())},
        "jids": {jid: state.jids.all(jid) for jid in sorted(state.jids)},
        "queues": {
            name: (queue.first_seen, queue.pause, list(queue.ready)) for name, queue in sorted(state.queues.items())
        },
        "shelves": {job_state: list(shelf) for job_state, shelf in state.by_state.items()},
        "audit": list(state.audit),
        "counters": msgspec.to_builtins(state.counters),
        "stats": msgspec.to_builtins(state.stats.days, str_keys=True),
    }
