"""`job:<id>:status`: what has become of a monitored job, for a day after its last change (protocol page 11)."""

from typing import Final

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.queries.records import progress_of
from crossdock.engine.state import EngineState
from crossdock.protocols.redis.resqu import entries

#: A track's words, and Resqu's for the same.
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
    return entries.string(text, track.until)
