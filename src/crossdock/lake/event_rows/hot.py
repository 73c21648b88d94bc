"""The three most frequent kinds of row: pushed, leased and succeeded. They are built column by column."""

from typing import Any, ClassVar

from crossdock.lake.event_rows.columns import FORMS, STATES, Columns, Part, array, booked_days, few
from crossdock.lake.redaction import Payloads
from crossdock.model.events import Leased, Succeeded
from crossdock.model.job import Spec


class Pushes(Part):
    fixed: ClassVar[dict[str, Any]] = {"event": "pushed", "attempt": 0}

    def __init__(self, payloads: Payloads) -> None:
        super().__init__(payloads)
        self._specs: list[Spec] = []
        self._heads: list[tuple[float, float | None, str, int, str]] = []

    def add(self, seq: int, at: float, t: float | None, via: str, number: int, spec: Spec, wall: float) -> None:
        self.seqs.append(seq)
        self._specs.append(spec)
        state = "ready" if spec.due <= wall else "scheduled"
        extra = spec.extra
        if extra is not None and extra.links is not None and extra.links.depends_on:
            state = "blocked"
        self._heads.append((at, t, via, number, state))
        if extra is not None or spec.due:
            self.links(spec)

    def columns(self, day: int) -> Columns:
        specs = self._specs
        heads = zip(*self._heads, strict=True)
        columns = {
            name: few(name, values) for name, values in zip(("at", "t", "via", "number", "state"), heads, strict=True)
        }
        columns["origin"] = columns["via"]
        columns |= {
            "jid": array("jid", [spec.jid for spec in specs]),
            "queue": few("queue", [spec.queue for spec in specs]),
            "kind": few("kind", [spec.kind for spec in specs]),
            "priority": few("priority", [spec.priority for spec in specs]),
            "size": few("size", [len(spec.payload) for spec in specs]),
            "retries": few("retries", [spec.policy.max_failures for spec in specs]),
            "lease_s": few("lease_s", [spec.policy.lease_s or None for spec in specs]),
            "form": few("form", [FORMS[spec.form] for spec in specs]),
        }
        shown = [self.payloads.shown(spec.payload) for spec in specs]
        columns["payload"] = array("payload", [payload for payload, _ in shown])
        columns["payload_hash"] = array("payload_hash", [hashed for _, hashed in shown])
        return columns


class Leases(Part):
    fixed: ClassVar[dict[str, Any]] = {"event": "leased", "state": "leased", "booked_wait": True}

    def __init__(self, payloads: Payloads) -> None:
        super().__init__(payloads)
        self._events: list[Leased] = []

    def add(self, seq: int, event: Leased) -> None:
        self.seqs.append(seq)
        self._events.append(event)

    def columns(self, day: int) -> Columns:
        events = self._events
        columns = _heads(events, day)
        columns["lease_via"] = columns["via"]
        columns["wait_s"] = array("wait_s", [event.wait_s for event in events])
        return columns


class Successes(Part):
    """Successes that end a lease. A job settled without a lease is a row of `Others`."""

    fixed: ClassVar[dict[str, Any]] = {"event": "succeeded", "outcome": "succeeded", "booked_run": True}

    def __init__(self, payloads: Payloads) -> None:
        super().__init__(payloads)
        self._events: list[Succeeded] = []

    def add(self, seq: int, event: Succeeded) -> None:
        self.seqs.append(seq)
        self._events.append(event)
        if event.payload is not None:
            self.content(event.payload)

    def columns(self, day: int) -> Columns:
        events = self._events
        columns = _heads(events, day)
        other = any(event.leased_via for event in events)
        if any(event.qless for event in events):
            columns["booked_queue"] = array("booked_queue", [_booked_queue(event) for event in events])
        columns |= {
            "lease_via": array("lease_via", [event.leased_via or event.via for event in events])
            if other
            else columns["via"],
            "state": few("state", [STATES[event.then] for event in events]),
            "leased_at": array("leased_at", [event.leased_at for event in events]),
            "wait_s": array("wait_s", [event.wait_s for event in events]),
            "run_s": array("run_s", [event.run_s for event in events]),
            "beats": few("beats", [event.beats for event in events]),
            "pushed_at": array("pushed_at", [event.pushed_at for event in events]),
        }
        return columns


def _booked_queue(event: Succeeded) -> str:
    booked = event.qless.booked_queue if event.qless is not None else ""
    return booked or event.queue


def _heads(events: list[Any], day: int) -> Columns:
    """The columns of both kinds. Written out, because getattr with a variable takes twice the time."""
    at, t = [event.at for event in events], [event.t for event in events]
    queue = few("queue", [event.queue for event in events])
    return {
        "at": array("at", at),
        "t": array("t", t),
        "jid": array("jid", [event.jid for event in events]),
        "number": array("number", [event.number for event in events]),
        "queue": queue,
        "kind": few("kind", [event.kind for event in events]),
        "origin": few("origin", [event.origin for event in events]),
        "via": few("via", [event.via for event in events]),
        "worker": few("worker", [event.worker for event in events]),
        "attempt": few("attempt", [event.attempt for event in events]),
        "priority": few("priority", [event.priority for event in events]),
        "size": few("size", [event.payload_bytes for event in events]),
        "token": array("token", [event.token for event in events]),
        "booked_queue": queue,
        "booked_day": booked_days(at, t, day),
    }
