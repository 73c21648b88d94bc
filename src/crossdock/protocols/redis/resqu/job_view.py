"""Jobs as Resqu's lists show them: the bytes as pushed, or a payload built for jobs of other protocols (model.md
section 10)."""

from typing import Final

import msgspec

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.queries.records import progress_of
from crossdock.engine.state import EngineState
from crossdock.model.commands.resqu import SHOWN_AS
from crossdock.model.job import Form, Job, ResquData, Spec
from crossdock.protocols.payload import as_value
from crossdock.protocols.redis.resqu import keys, payload
from crossdock.protocols.redis.resqu.specs import added

_encode: Final = msgspec.json.Encoder().encode


def resqu_data(job: Job) -> ResquData | None:
    protocol_data = None if job.extra is None else job.extra.protocol_data
    return protocol_data if type(protocol_data) is ResquData else None


def resqu_data_of_spec(spec: Spec) -> ResquData | None:
    protocol_data = None if spec.extra is None else spec.extra.protocol_data
    return protocol_data if type(protocol_data) is ResquData else None


def text(job: Job) -> bytes:
    protocol_data = resqu_data(job)
    if protocol_data is None:
        return _foreign(job)
    return protocol_data.text if protocol_data.stamped else _stamped(job, protocol_data.text)


def popped(job: Job) -> bytes:
    """The payload for a worker. A job with a unique id but without its lock, as in batches, gets an id made of its
    number. Otherwise the worker's report would be attributed to the job that holds the lock."""
    shown = text(job)
    links = None if job.extra is None else job.extra.links
    if b'"unique"' not in shown or (links is not None and links.lock is not None) or resqu_data(job) is None:
        return shown
    members = msgspec.json.decode(shown, type=dict[str, msgspec.Raw])
    if payload.queued(shown).unique is None:
        return shown
    members["unique"] = msgspec.Raw(b'{"uid":"%b%d"}' % (SHOWN_AS.encode(), job.number))
    return _encode(members)


def base(job: Job) -> bytes:
    """The payload in a list of delayed jobs, without an id."""
    protocol_data = resqu_data(job)
    return _foreign(job) if protocol_data is None else protocol_data.text


def _stamped(job: Job, plain: bytes) -> bytes:
    return added(plain, b'"id":%b,"queue_time":%.6f' % (_encode(job.jid), job.since))


def _foreign(job: Job) -> bytes:
    """The payload of a job of another protocol. The worker reports the result by the unique id."""
    parts = [
        b'"class":%b,"sourceId":%b,"name":%b' % (_encode(job.kind), _encode(job.origin), _encode(job.kind)),
        b'"args":%b' % _args(job) if job.form is not Form.NONE else b"",
        b'"unique":{"uid":"%b%d"}' % (SHOWN_AS.encode(), job.number),
        b'"failCount":%d' % job.failures if job.failures > 0 else b"",
        b'"id":%b,"queue_time":%.6f' % (_encode(job.jid), job.since),
    ]
    return b"{%b}" % b",".join(part for part in parts if part)


def _args(job: Job) -> bytes:
    """The payload itself if it is a JSON object or array, else an object that contains it (model.md section 9)."""
    if job.form is Form.JSON and job.payload.lstrip()[:1] in (b"{", b"["):
        return job.payload
    return b'{"payload":%b}' % as_value(job)


# `job:<id>:status`: the status of a monitored job, for a day after its last change (resqu.md section 11).


#: Progress states, and Resqu's names for them.
_WORDS: Final = {
    "enqueued": b"waiting",
    "working": b"running",
    "failed": b"retried",
    "success": b"finished",
    "dead": b"failed",
}


def read(state: EngineState, jid: str) -> Entry | None:
    track = progress_of(state, jid)
    if track is None or track.state not in _WORDS:
        return None
    text = b'{"status":"%b","updated":%d}' % (_WORDS[track.state], track.updated)
    return keys.string(text, track.until)
