"""Converts parsed Resqu payloads to the specs that the engine takes."""

from typing import Final

import msgspec

from crossdock.model.commands.resqu import UNASSIGNED, unique
from crossdock.model.job import Extra, Form, Links, ResquData, Spec
from crossdock.model.policies import LeaseExpiry, Policy
from crossdock.protocols.job_spec import new_id
from crossdock.protocols.redis.resqu import payload as resqu_payload
from crossdock.protocols.redis.resqu.payload import Payload, PlannedPayload, as_bytes

VIA: Final = "resqu"

# Bound once, because the lookup of an enum member costs as much as a call.
_NONE: Final = Form.NONE
_JSON: Final = Form.JSON


class Specs:
    """`fail_retries` is the total number of attempts, as in Resqu's server. After `max_attempts` leases a job is not
    returned to its queue when its worker dies, so that a job cannot kill workers forever; 0: no limit."""

    def __init__(self, fail_retries: int = 3, max_attempts: int = 0) -> None:
        self._policy = Policy(max(0, fail_retries - 1), max_attempts, lease_expiry=LeaseExpiry.RETURN)

    def queued(self, text: bytes, stage: str = "") -> Spec:
        """A job with an id. `stage` is its batch; jobs of batches take no unique lock (resqu.md section 6)."""
        payload = resqu_payload.queued(text)
        return self._spec(payload, text, payload.jid, 0.0, None, stage)

    def delayed(self, text: bytes, second: int) -> Spec:
        return self._spec(resqu_payload.base(text), text, "", float(max(0, second)))

    def deferred(self, text: bytes) -> Spec:
        payload = resqu_payload.base(text)
        return self._spec(payload, text, "", 0.0, _deferrable_s(payload) or 0)

    def planned(self, text: bytes) -> tuple[PlannedPayload, Spec]:
        """A plan, and the job of each run without the members of the plan."""
        payload = resqu_payload.planned(text)
        members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        for member in ("id", "nextRun", "recurrenceInterval"):
            members.pop(member, None)
        return payload, self._spec(payload, msgspec.json.encode(members), "", 0.0, _deferrable_s(payload))

    def _spec(
        self,
        payload: Payload,
        text: bytes,
        jid: str,
        due: float = 0.0,
        defer: float | None = None,
        stage: str = "",
    ) -> Spec:
        if not payload.name:
            payload.name = payload.kind
            text = added(text, b'"name":' + msgspec.json.encode(payload.name))
        args, links = as_bytes(payload.args), None
        if payload.unique is not None and not stage:
            links = Links(unique(payload.unique.uid), tracked=payload.monitored)
        elif payload.monitored:
            links = Links(tracked=True)
        protocol_data = ResquData(text, payload.source, payload.name, bool(jid), defer)
        return Spec(
            jid or new_id(),
            UNASSIGNED,
            payload.kind,
            args,
            _JSON if args else _NONE,
            0,
            self._policy,
            due,
            Extra(b"", protocol_data, None, links, resqu_batch=stage)
            if stage
            else Extra(b"", protocol_data, None, links),
            payload.fails,
        )


def _deferrable_s(payload: Payload) -> int | None:
    return None if payload.unique is None else payload.unique.deferrable_s


def added(text: bytes, member: bytes) -> bytes:
    """A non-empty JSON object with one more member at its end."""
    return b"%b,%b}" % (text.rstrip()[:-1], member)
