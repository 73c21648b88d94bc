"""Requests about the journal, for erasing data: export it to the lake now, and remove old entries for good."""

import logging
from typing import Final, NamedTuple, Protocol

from crossdock import logs
from crossdock.engine.qless.queries import is_tracked
from crossdock.engine.queries.jobs import job_by_number, jobs_of_jid
from crossdock.engine.queries.records import progress_of
from crossdock.engine.state import EngineState
from crossdock.model.commands.admin import ForgetProgress, Remove
from crossdock.model.commands.qless import Unwatch
from crossdock.model.job import Job, Number
from crossdock.model.states import State
from crossdock.protocols.admin import audit, messages
from crossdock.protocols.admin.codec import reply
from crossdock.protocols.admin.pages import PAUSE_S
from crossdock.protocols.base import Dispatcher, Slices

log = logging.getLogger("crossdock.erase")

VIA: Final = "admin"

#: Jobs removed in one step.
_SLICE: Final = 250


class Exported(NamedTuple):
    last: int  #: newest entry of the journal
    exported: int | None  #: newest entry in the lake; None: the lake is off


class Purged(NamedTuple):
    upto: int
    done: bool
    waits_for: str


class JournalKeeper(Protocol):
    """The part of the server that these requests need."""

    def export(self) -> Exported:
        """Begin to write everything so far to the lake. Returns how far it is."""

    def purge(self, upto: int | None) -> Purged:
        """Begin to remove all entries so far, or return how far that is."""


def export(keeper: JournalKeeper) -> bytes:
    return reply(keeper.export()._asdict())


def compact(keeper: JournalKeeper, request: messages.Compact) -> bytes:
    return reply(keeper.purge(request.upto)._asdict())


def erase(dispatcher: Dispatcher, request: messages.Erase) -> Slices:
    """Delete jobs in every state, and what is stored under their jids. With `dry_run` the jobs are only counted."""
    found: dict[Number, Job] = {}
    for number in request.numbers:
        job = job_by_number(dispatcher.state, Number(number))
        if job is not None:
            found[job.number] = job
    for jid in request.jids:
        found.update((job.number, job) for job in jobs_of_jid(dispatcher.state, jid))
    jobs = [{"number": job.number, "jid": job.jid, "leased": job.state is State.LEASED} for job in found.values()]
    if not request.dry_run:
        jids = [*request.forget, *request.jids, *(job.jid for job in found.values())]
        forgotten = sum(_is_stored(dispatcher.state, jid) for jid in set(request.forget))
        audit.record(dispatcher, request, len(found) + forgotten)
        yield from _remove(dispatcher, list(found), jids)
        text = f"an operator erased {len(jobs)} jobs, and what is stored under {len(set(jids))} jids"
        logs.event(log, logging.INFO, "erased", text, jobs=len(jobs))
    return reply({"jobs": jobs})


def _is_stored(state: EngineState, jid: str) -> bool:
    """Whether progress or tracking is stored under that jid."""
    return is_tracked(state, jid) or progress_of(state, jid) is not None


def _remove(dispatcher: Dispatcher, numbers: list[Number], jids: list[str]) -> Slices:
    for first in range(0, len(numbers), _SLICE):
        dispatcher.do(Remove(VIA, "erased", numbers[first : first + _SLICE], frozenset(State)))
        yield PAUSE_S
    for jid in dict.fromkeys(jids):
        if is_tracked(dispatcher.state, jid):
            dispatcher.do(Unwatch(jid))
    dispatcher.do(ForgetProgress(jids))
    return b""
