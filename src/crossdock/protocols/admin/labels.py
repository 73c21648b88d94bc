"""Tags of jobs, and tracked jobs, whose changes qless publishes."""

from crossdock.engine.index.tags import name
from crossdock.engine.qless.queries import is_tracked, jobs_by_tag, tracked_jids
from crossdock.engine.queries.jobs import newest_job
from crossdock.model.commands.qless import EditTags, Unwatch, Watch
from crossdock.model.job import Job
from crossdock.protocols.admin import audit, selection, views
from crossdock.protocols.admin.actions import SLICE, VIA
from crossdock.protocols.admin.codec import error, reply
from crossdock.protocols.admin.messages import Invalid, Retag, Tag, Tags, Track, Tracked, Untrack
from crossdock.protocols.admin.pages import PAUSE_S, by_name, largest
from crossdock.protocols.base import Answer, Dispatcher, Slices


def tags(dispatcher: Dispatcher, request: Tags) -> Slices:
    known = jobs_by_tag(dispatcher.state)
    after = None
    if request.by == "jobs":
        texts = yield from largest(known, request.limit, lambda text: len(known.get(text, ())))
    else:
        texts, after = yield from by_name(known, request)
    rows = [{"tag": text, "jobs": len(known[text])} for text in texts if text in known]
    return reply({"tags": rows, "after": after})


def retag(dispatcher: Dispatcher, request: Retag) -> bytes:
    """Add or remove tags of the newest live job with that ID. The reply has all its tags, and how many changed."""
    found = selection.find_jobs(dispatcher.state, request.id)
    if not found:
        return error(f"job {request.id} not found")
    job = found[-1]
    has = job.extra.tags if job.extra is not None else ()
    if isinstance(request, Tag):
        known = {name(tag) for tag in has}
        new = tuple(selection.new_name(text) for text in dict.fromkeys(request.tags) if text not in known)
        edit = EditTags(VIA, dispatcher.now.wall, job.number, add=new)
    else:
        edit = EditTags(
            VIA, dispatcher.now.wall, job.number, drop=tuple(tag for tag in has if name(tag) in request.tags)
        )
    changed = edit.add or edit.drop
    if changed:
        dispatcher.do(edit)
    return reply({"number": job.number, "jid": job.jid, "tags": views.tags(job), "done": len(changed)})


def tracked(dispatcher: Dispatcher, request: Tracked) -> Answer:
    """Tracked jids in order. A jid may be tracked although its job is gone, and a new job may have it. Filters exclude
    jobs that are gone."""
    wanted = selection.select(request, dispatcher.state, dispatcher.now)
    is_filtered = selection.is_filtered(request) or request.as_of is not None
    return _tracked(dispatcher, request, wanted if is_filtered else None)


def _tracked(dispatcher: Dispatcher, request: Tracked, wanted: selection.Selection | None) -> Slices:
    state = dispatcher.state
    jids, after = yield from by_name(tracked_jids(state), request)
    rows = []
    for jid in jids:
        if is_tracked(state, jid):
            job = newest_job(state, jid)
            if wanted is not None and (job is None or not _matches(job, wanted)):
                continue
            shown = None if job is None else views.row(job, dispatcher.now)
            rows.append({"jid": jid, "since": views.when(tracked_jids(state)[jid]), "job": shown})
    return reply({"tracked": rows, "after": after})


def _matches(job: Job, wanted: selection.Selection) -> bool:
    has_tag = wanted.tag is None or wanted.tag in views.tags(job)
    return has_tag and bool(selection.matching([job], None, wanted))


def track(dispatcher: Dispatcher, request: Track) -> bytes:
    """`done` lists the jids that were not tracked before."""
    done, unknown = [], []
    for each in dict.fromkeys(request.ids):
        found = selection.find_jobs(dispatcher.state, each)
        if not found:
            unknown.append(each)
        elif not is_tracked(dispatcher.state, found[-1].jid):
            dispatcher.do(Watch(found[-1].jid, dispatcher.now.wall))
            done.append(found[-1].jid)
    return reply({"done": done, "unknown": unknown})


def untrack(dispatcher: Dispatcher, request: Untrack) -> Answer:
    if not request.ids and not request.all:
        raise Invalid("select jobs: by ids, or all = true")
    return _untrack(dispatcher, request)


def _untrack(dispatcher: Dispatcher, request: Untrack) -> Slices:
    state = dispatcher.state
    done: list[str] = []
    recorded = 0
    unknown: list[int | str] = []
    for seen, each in enumerate(list(tracked_jids(state)) if request.all else dict.fromkeys(request.ids), 1):
        if seen % SLICE == 0:
            audit.record(dispatcher, request, len(done) - recorded, continues=recorded > 0)
            recorded = len(done)
            yield PAUSE_S
        jid = str(each)
        if not is_tracked(state, jid):
            found = selection.find_jobs(state, each)
            jid = found[-1].jid if found else jid
        if is_tracked(state, jid):
            dispatcher.do(Unwatch(jid))
            done.append(jid)
        elif not request.all:
            unknown.append(each)
    audit.record(dispatcher, request, len(done) - recorded, continues=recorded > 0)
    return reply({"done": done, "unknown": unknown})
