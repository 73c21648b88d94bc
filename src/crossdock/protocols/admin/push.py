"""`push`: one job from an operator. It has the fields and the policy of a Faktory job."""

from msgspec.structs import replace

from crossdock.engine.queries.jobs import newest_job
from crossdock.model.commands.core import Enqueue, Refused
from crossdock.model.job import Extra, Spec
from crossdock.protocols.admin.actions import VIA
from crossdock.protocols.admin.codec import reply
from crossdock.protocols.admin.messages import Invalid, Push
from crossdock.protocols.admin.selection import new_name
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.job_spec import InvalidJob, build_spec, new_id

_REFUSALS = {
    Refused.NOT_UNIQUE: "another job holds the unique lock that custom asks for",
    Refused.NO_BATCH: "the batch that custom names does not exist",
    Refused.DUPLICATE: "a job with this jid exists; leave jid out to get a new one",
}


def push(dispatcher: Dispatcher, request: Push) -> bytes:
    spec = _spec(dispatcher, request)
    no_room = dispatcher.no_room(1)
    if no_room is not None:
        raise Invalid(no_room)
    refused = dispatcher.do(Enqueue(VIA, [spec], unless_live=True))
    if refused and refused[0] is not None:
        raise Invalid(f"the job was not pushed: {_REFUSALS[refused[0]]}")
    job = newest_job(dispatcher.state, spec.jid)
    return reply({"jid": spec.jid, "number": job.number if job is not None else None})


def _spec(dispatcher: Dispatcher, request: Push) -> Spec:
    """Raises Invalid."""
    args, custom = bytes(request.args), bytes(request.custom)
    try:
        for text in (args, custom):
            text.decode()  # the JSON decoder does not check it
        spec = build_spec(
            jid=request.jid or new_id(),
            kind=request.kind,
            queue=request.queue,
            args=args,
            custom=custom,
            retry=request.retries,
            reserve_for=request.lease_s,
            priority=request.priority,
            now=dispatcher.now,
        )
    except (InvalidJob, UnicodeDecodeError) as wrong:
        raise Invalid(str(wrong)) from wrong
    if request.at is not None:
        spec = replace(spec, due=request.at)
    if request.tags:
        tags = tuple(new_name(text) for text in dict.fromkeys(request.tags))
        spec = replace(spec, extra=replace(spec.extra or Extra(), tags=tags))
    return spec
