"""Rate limits of clients with extensions: the member `rate` of a job, and RATE SYNC for the limits of an app."""

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from crossdock.engine.queries.rates import room_for_rates
from crossdock.model.commands.core import SetRates
from crossdock.model.job import RateTerms
from crossdock.model.rate_text import LEAST_S, MOST_COUNT, MOST_S
from crossdock.model.records import FROM_APP, RateScope, RateSpec
from crossdock.protocols.base import Answer
from crossdock.protocols.faktory.messages import OK, error
from crossdock.protocols.faktory.settle import Invalid, check_app, read
from crossdock.protocols.job_spec import NAME_BYTES, InvalidJob

if TYPE_CHECKING:
    from crossdock.protocols.faktory.session import FaktorySession

#: Of an app.
RATES_AT_MOST: Final = 1_000


class RateBody(msgspec.Struct):
    """The member `rate` of a job."""

    name: str
    count: int
    per_s: float


class AppRate(msgspec.Struct):
    count: int
    per_s: float
    kind: str | None = None
    queue: str | None = None


class SyncBody(msgspec.Struct):
    app: str
    rates: Annotated[list[AppRate], Meta(max_length=RATES_AT_MOST)]


_sync_body = msgspec.json.Decoder(SyncBody).decode


def terms(body: RateBody) -> RateTerms:
    """The limit that a job carries. Raises InvalidJob."""
    if not 0 < len(body.name.encode()) <= NAME_BYTES:
        raise InvalidJob(f"rate.name must have 1 to {NAME_BYTES} bytes")
    wrong = _out_of_bounds(body.count, body.per_s)
    if wrong:
        raise InvalidJob(f"rate.{wrong}")
    return RateTerms(body.name, body.count, body.per_s)


def _out_of_bounds(count: int, per_s: float) -> str:
    """The member that is out of bounds, and what it must be. Empty: none is."""
    if not 1 <= count <= MOST_COUNT:
        return f"count must be from 1 to {MOST_COUNT}"
    if not LEAST_S <= per_s <= MOST_S:
        return f"per_s must be a number of seconds from {LEAST_S} to {MOST_S:.0f}"
    return ""


def rate(session: "FaktorySession", body: bytes) -> Answer:
    word, _, rest = body.partition(b" ")
    if word != b"SYNC":
        return error("invalid RATE: write RATE SYNC {…}")
    asked: SyncBody = read("RATE SYNC", _sync_body, rest)
    check_app(asked.app)
    wanted: dict[tuple[RateScope, str], RateSpec] = {}
    for each in asked.rates:
        spec = _spec(each)
        if (spec.scope, spec.target) in wanted:
            raise Invalid(f"{_named(spec.scope, spec.target)} has two rates")
        wanted[spec.scope, spec.target] = spec
    dispatcher, source = session.dispatcher, FROM_APP + asked.app
    if not room_for_rates(dispatcher.state, source, len(wanted)):
        return error("the server has too many rate limits; remove some")
    dispatcher.do(SetRates(source, list(wanted.values())))
    return OK


def _spec(each: AppRate) -> RateSpec:
    """Raises Invalid, with a text that names the limit."""
    if (each.kind is None) == (each.queue is None):
        raise Invalid("each of the rates must have either kind or queue")
    scope = RateScope.KIND if each.kind is not None else RateScope.QUEUE
    target = each.kind or each.queue or ""
    if not 0 < len(target.encode()) <= NAME_BYTES:
        raise Invalid(f"the {scope.name.lower()} of a rate must have 1 to {NAME_BYTES} bytes")
    wrong = _out_of_bounds(each.count, each.per_s)
    if wrong:
        raise Invalid(f"the rate of {_named(scope, target)}: {wrong}")
    return RateSpec(target, scope, target, each.count, each.per_s)


def _named(scope: RateScope, target: str) -> str:
    return f"{scope.name.lower()} {target}"
