"""The Workq job: IDs, from the words of `add`, `schedule` and `run` to a `Spec`, and as `inspect` shows it."""

import re
from functools import lru_cache
from typing import Final

from crossdock.model.clock import Now
from crossdock.model.job import Extra, Form, Job, Links, Number, Spec, WorkqData
from crossdock.model.policies import Backoff, Disposition, LeaseExpiry, Policy
from crossdock.model.states import State
from crossdock.protocols.payload import as_bytes
from crossdock.protocols.workq import codec
from crossdock.protocols.workq.codec import NO_FLAGS, Flags, InvalidCommand, name, signed, spelled, stamp, unsigned

DAY_MS: Final = 86_400_000  #: the longest TTR, and the longest wait
TRIES: Final = 255
LEASE_S: Final = 60.0  #: of a job from another protocol that has no lease time
LOWEST: Final = -(2**31)
HIGHEST: Final = 2**31 - 1
_SCHEDULED_BAND: Final = 2
_SHORT: Final = 300  #: bytes; longer words are not cached
_RAW: Final = Form.RAW  #: a module constant: looking up an enumeration's member costs as much as a call
_ANY_ID: Final = b"61a444a0-6128-41c0-8078-cc757d3bd2d8"


def added(words: list[bytes], flags: Flags, payload: bytes) -> Spec:
    """`add <id> <name> <ttr> <ttl> <payload-size>`. Raises InvalidCommand."""
    _, raw, named, ttr, ttl, _ = words
    ident = parse(raw)
    if not flags and ident is not None and sound(ident) and len(named) + len(ttr) + len(ttl) <= _SHORT:
        alike = _alike(named, ttr, ttl)
        if alike is not None:
            queue, policy, extra = alike
            return Spec(ident, queue, queue, payload, _RAW, 0, policy, 0.0, extra)
    return _added(words, flags, payload)


@lru_cache(maxsize=4_096)
def _alike(named: bytes, ttr: bytes, ttl: bytes) -> tuple[str, Policy, Extra] | None:
    """The parts that jobs with the same words share. None: a word is invalid; `_added` finds the first one."""
    words = [b"add", _ANY_ID, named, ttr, ttl, b"0"]
    try:
        one = _added(words, NO_FLAGS, b"")
    except InvalidCommand:
        return None
    return (one.queue, one.policy, one.extra) if one.extra is not None else None


def _added(words: list[bytes], flags: Flags, payload: bytes) -> Spec:
    ident, ttr, ttl = _begin(words, flags), _digits(words[3], codec.INVALID_TTR), _ttl(words[4])
    attempts, fails, priority = _options(flags) if flags else (0, 0, 0)
    queue = _end(ident, words[2], ttr)
    if not ttl:
        raise InvalidCommand(codec.INVALID_TTL)
    return Spec(
        ident, queue, queue, payload, Form.RAW, priority, _policy(ttr, attempts, fails), 0.0, _extra(ttl, 0.0, fails)
    )


def scheduled(words: list[bytes], flags: Flags, payload: bytes, now: Now) -> Spec:
    """`schedule <id> <name> <ttr> <ttl> <time> <payload-size>`. A past time is valid until its TTL has passed.
    Raises InvalidCommand."""
    ident, ttr, ttl = _begin(words, flags), _digits(words[3], codec.INVALID_TTR), _ttl(words[4])
    time = codec.parse(words[5])
    if time is None:
        raise InvalidCommand(codec.INVALID_TIME)
    attempts, fails, priority = _options(flags) if flags else (0, 0, 0)
    queue = _end(ident, words[2], ttr)
    if not ttl:
        raise InvalidCommand(codec.INVALID_TTL)
    if time + ttl / 1_000 <= now.wall:
        raise InvalidCommand(codec.INVALID_TIME)
    return Spec(
        ident, queue, queue, payload, Form.RAW, priority, _policy(ttr, attempts, fails), time, _extra(ttl, time, fails)
    )


def foreground(words: list[bytes], flags: Flags, payload: bytes) -> tuple[Spec, int]:
    """`run <id> <name> <ttr> <wait-timeout> <payload-size>`: its job, and the wait in ms. Raises InvalidCommand."""
    ident = _begin(words, flags, 1)
    ttr = _digits(words[3], codec.INVALID_TTR)
    priority = _priority(flags)
    wait = timeout(words[4])
    queue = _end(ident, words[2], ttr)
    return Spec(ident, queue, queue, payload, Form.RAW, priority, _run_policy(ttr), 0.0, _FOREGROUND), wait


def timeout(text: bytes) -> int:
    wait = unsigned(text, DAY_MS)
    if wait is None:
        raise InvalidCommand(codec.INVALID_WAIT)
    return wait


def _begin(words: list[bytes], flags: Flags, most_flags: int = 3) -> str:
    """The first checks: the number of flags, unknown ones included, and the ID."""
    if len(flags) > most_flags:
        raise InvalidCommand(codec.INVALID_ARGS)
    ident = parse(words[1])
    if ident is None:
        raise InvalidCommand(codec.INVALID_ID)
    return ident


def _end(ident: str, named: bytes, ttr: int) -> str:
    """The last checks, once every word is readable. Returns the queue's name."""
    if not sound(ident):
        raise InvalidCommand(codec.INVALID_ID)
    queue = name(named)
    if queue is None:
        raise InvalidCommand(codec.INVALID_NAME)
    if not 1 <= ttr <= DAY_MS:
        raise InvalidCommand(codec.INVALID_TTR)
    return queue


def _digits(text: bytes, wrong: bytes) -> int:
    number = unsigned(text)
    if number is None:
        raise InvalidCommand(wrong)
    return number


def _ttl(text: bytes) -> int:
    """Up to 2^64 - 1 ms, as in the original protocol document (workq.md section 10, row 7)."""
    return _digits(text, codec.INVALID_TTL)


def _options(flags: Flags) -> tuple[int, int, int]:
    """Attempts, fails and priority, each 0 by default."""
    attempts = unsigned(flags.get(b"max-attempts", b"0"), TRIES)
    if attempts is None:
        raise InvalidCommand(codec.INVALID_MAX_ATTEMPTS)
    fails = unsigned(flags.get(b"max-fails", b"0"), TRIES)
    if fails is None:
        raise InvalidCommand(codec.INVALID_MAX_FAILS)
    return attempts, fails, _priority(flags)


def _priority(flags: Flags) -> int:
    priority = signed(flags.get(b"priority", b"0"))
    if priority is None or not LOWEST <= priority <= HIGHEST:
        raise InvalidCommand(codec.INVALID_PRIORITY)
    return priority


@lru_cache(maxsize=1_024)
def _policy(ttr: int, attempts: int, fails: int) -> Policy:
    """A `fail` is final unless max-fails allows more (workq.md section 6.3). An expired TTR only counts as an attempt
    (section 6.1)."""
    return Policy(
        max(fails - 1, 0),
        attempts,
        ttr / 1_000,
        Backoff.NONE,
        exhausted=Disposition.FAILED,
        success=Disposition.COMPLETE,
        lease_expiry=LeaseExpiry.RETURN,
        due_band=_SCHEDULED_BAND,
    )


@lru_cache(maxsize=1_024)
def _run_policy(ttr: int) -> Policy:
    """One attempt. The result goes to the client that runs it and is not kept (workq.md section 5.3)."""
    return Policy(0, 0, ttr / 1_000, Backoff.NONE, lease_expiry=LeaseExpiry.DROP)


@lru_cache(maxsize=1_024)
def _extra(ttl: int, time: float, fails: int) -> Extra:
    """Shared by jobs with the same values."""
    return Extra(protocol_data=WorkqData(ttl, time, fails), links=Links(ttl_s=ttl / 1_000))


_FOREGROUND: Final = Extra(protocol_data=WorkqData(), links=Links(foreground=True))


# Job IDs (workq.md section 3): accepted in several forms (section 10, rows 8 and 9), shown in canonical form.
#
# A job of another protocol whose jid is no valid ID is shown as a UUID made from its number (model.md section 9).
# Requests accept that UUID.


_CANONICAL: Final = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LENIENT: Final = re.compile(
    rb"(?:urn:uuid:|(\{))?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})(?(1)\})",
    re.IGNORECASE,
)

#: Version 4 and the variant of RFC 4122. A random UUID has this prefix with a probability of 2**-56.
MADE_UP: Final = "c205d0c0-0000-400"
_MADE_UP: Final = re.compile(MADE_UP + "([0-9a-f])-8([0-9a-f]{3})-([0-9a-f]{12})")


def parse(text: bytes) -> str | None:
    """The canonical form of a UUID in any accepted form, else None."""
    if _CANONICAL.fullmatch(text):
        return text.decode()
    match = _LENIENT.fullmatch(text)
    return None if match is None else b"-".join(match.groups()[1:]).lower().decode()


def sound(ident: str) -> bool:
    """Is this canonical UUID one of RFC 4122 or RFC 9562? The nil UUID is not."""
    return ident[14] in "12345678" and ident[19] in "89ab"


def read(text: bytes) -> str | None:
    """`parse` and `sound` in one."""
    ident = parse(text)
    return ident if ident is not None and sound(ident) else None


def shown(job: Job) -> str:
    """The jid if it is a valid ID, else an ID made from the job's number."""
    jid = job.jid
    if len(jid) == 36 and jid.isascii() and _CANONICAL.fullmatch(jid.encode()) and sound(jid):
        return jid
    number = job.number
    return f"{MADE_UP}{number >> 60 & 0xF:x}-8{number >> 48 & 0xFFF:03x}-{number & 0xFFFFFFFFFFFF:012x}"


def number(ident: str) -> Number:
    """The job number in an ID that was made from one, 0 for other IDs."""
    match = _MADE_UP.fullmatch(ident)
    return 0 if match is None else int("".join(match.groups()), 16)


# A job of any protocol as `inspect` shows it (workq.md section 5.8), and its result.


_NEW, _COMPLETED, _FAILED, _PENDING, _LEASED = range(5)

#: States that do not depend on attempts. Other jobs are new, or pending after an attempt or a failure.
_STATES: Final = {
    State.LEASED: _LEASED,
    State.RETRYING: _PENDING,
    State.COMPLETE: _COMPLETED,
    State.FAILED: _FAILED,
    State.DEAD: _FAILED,
}


def record(job: Job) -> bytes:
    policy, payload = job.policy, as_bytes(job)
    protocol_data = (
        job.extra.protocol_data if job.extra is not None and isinstance(job.extra.protocol_data, WorkqData) else None
    )
    time = protocol_data.time if protocol_data is not None else job.due if job.state is State.SCHEDULED else 0.0
    state = _STATES.get(job.state, _PENDING if job.attempts or job.failures else _NEW)
    fails = protocol_data.max_fails if protocol_data is not None else min(max(policy.max_failures, -1) + 1, TRIES)
    lines = (
        b"%b %d" % (shown(job).encode(), 13 if time else 12),
        b"name %b" % spelled(job.queue),
        b"ttr %d" % round((policy.lease_s or LEASE_S) * 1_000),
        b"ttl %d" % (protocol_data.ttl_ms if protocol_data is not None else 0),
        b"payload-size %d" % len(payload),
        b"payload %b" % payload,
        b"max-attempts %d" % policy.max_attempts,
        b"attempts %d" % job.attempts,
        b"max-fails %d" % fails,
        b"fails %d" % job.failures,
        b"priority %d" % min(max(job.priority, LOWEST), HIGHEST),
        b"state %d" % state,
        b"created %b" % stamp(job.created),
        *((b"time %b" % stamp(time),) if time else ()),
        b"",
    )
    return b"\r\n".join(lines)


def outcome(job: Job) -> tuple[bool, bytes] | None:
    """Success and result of a job that has ended and is kept. None: it has not ended."""
    if job.state is State.COMPLETE or job.state is State.FAILED:
        result = job.extra.result if job.extra is not None else None
        return job.state is State.COMPLETE, b"" if result is None else result.body
    if job.state is State.DEAD:
        error = job.extra.error if job.extra is not None else None
        return False, b"" if error is None or error.lost else error.message.encode()
    return None
