"""The Workq job: from the words of `add`, `schedule` and `run` to a `Spec`, each check at its place (page 4.1)."""

from functools import lru_cache
from typing import Final

from crossdock.model.clock import Now
from crossdock.model.job import Extra, Form, Links, Spec, WorkqData
from crossdock.model.policies import Backoff, Disposition, LeaseExpiry, Policy
from crossdock.protocols.workq import ids, messages, timestamps
from crossdock.protocols.workq.messages import Invalid
from crossdock.protocols.workq.words import NO_FLAGS, Flags, name, signed, unsigned

DAY_MS: Final = 86_400_000  #: the longest TTR, and the longest wait
TRIES: Final = 255
LEASE_S: Final = 60.0  #: of a job that came by another door and says nothing
LOWEST: Final = -(2**31)
HIGHEST: Final = 2**31 - 1
_SCHEDULED_BAND: Final = 2
_SHORT: Final = 300  #: bytes; longer words are not worth remembering
_RAW: Final = Form.RAW  #: looked up once: a member of an enumeration costs as much as a call
_ANY_ID: Final = b"61a444a0-6128-41c0-8078-cc757d3bd2d8"


def added(words: list[bytes], flags: Flags, payload: bytes) -> Spec:
    """`add <id> <name> <ttr> <ttl> <payload-size>`. Raises Invalid."""
    _, raw, named, ttr, ttl, _ = words
    ident = ids.parse(raw)
    if not flags and ident is not None and ids.sound(ident) and len(named) + len(ttr) + len(ttl) <= _SHORT:
        alike = _alike(named, ttr, ttl)
        if alike is not None:
            queue, policy, extra = alike
            return Spec(ident, queue, queue, payload, _RAW, 0, policy, 0.0, extra)
    return _added(words, flags, payload)


@lru_cache(maxsize=4_096)
def _alike(named: bytes, ttr: bytes, ttl: bytes) -> tuple[str, Policy, Extra] | None:
    """Clients add jobs of one kind again and again. None: something is wrong, and what comes first is to be told."""
    words = [b"add", _ANY_ID, named, ttr, ttl, b"0"]
    try:
        one = _added(words, NO_FLAGS, b"")
    except Invalid:
        return None
    return (one.queue, one.policy, one.extra) if one.extra is not None else None


def _added(words: list[bytes], flags: Flags, payload: bytes) -> Spec:
    ident, ttr, ttl = _begin(words, flags), _digits(words[3], messages.INVALID_TTR), _ttl(words[4])
    attempts, fails, priority = _options(flags) if flags else (0, 0, 0)
    queue = _end(ident, words[2], ttr)
    if not ttl:
        raise Invalid(messages.INVALID_TTL)
    return Spec(
        ident, queue, queue, payload, Form.RAW, priority, _policy(ttr, attempts, fails), 0.0, _extra(ttl, 0.0, fails)
    )


def scheduled(words: list[bytes], flags: Flags, payload: bytes, now: Now) -> Spec:
    """`schedule <id> <name> <ttr> <ttl> <time> <payload-size>`. A time that has passed will do while its TTL has not.
    Raises Invalid."""
    ident, ttr, ttl = _begin(words, flags), _digits(words[3], messages.INVALID_TTR), _ttl(words[4])
    time = timestamps.parse(words[5])
    if time is None:
        raise Invalid(messages.INVALID_TIME)
    attempts, fails, priority = _options(flags) if flags else (0, 0, 0)
    queue = _end(ident, words[2], ttr)
    if not ttl:
        raise Invalid(messages.INVALID_TTL)
    if time + ttl / 1_000 <= now.wall:
        raise Invalid(messages.INVALID_TIME)
    return Spec(
        ident, queue, queue, payload, Form.RAW, priority, _policy(ttr, attempts, fails), time, _extra(ttl, time, fails)
    )


def foreground(words: list[bytes], flags: Flags, payload: bytes) -> tuple[Spec, int]:
    """`run <id> <name> <ttr> <wait-timeout> <payload-size>`: its job, and how long to wait (ms). Raises Invalid."""
    ident = _begin(words, flags, 1)
    ttr = _digits(words[3], messages.INVALID_TTR)
    priority = _priority(flags)
    wait = timeout(words[4])
    queue = _end(ident, words[2], ttr)
    return Spec(ident, queue, queue, payload, Form.RAW, priority, _run_policy(ttr), 0.0, _FOREGROUND), wait


def timeout(text: bytes) -> int:
    wait = unsigned(text, DAY_MS)
    if wait is None:
        raise Invalid(messages.INVALID_WAIT)
    return wait


def _begin(words: list[bytes], flags: Flags, most_flags: int = 3) -> str:
    """What is checked first: unknown flags pass, too many do not."""
    if len(flags) > most_flags:
        raise Invalid(messages.INVALID_ARGS)
    ident = ids.parse(words[1])
    if ident is None:
        raise Invalid(messages.INVALID_ID)
    return ident


def _end(ident: str, named: bytes, ttr: int) -> str:
    """What is checked once all can be read; the name."""
    if not ids.sound(ident):
        raise Invalid(messages.INVALID_ID)
    queue = name(named)
    if queue is None:
        raise Invalid(messages.INVALID_NAME)
    if not 1 <= ttr <= DAY_MS:
        raise Invalid(messages.INVALID_TTR)
    return queue


def _digits(text: bytes, wrong: bytes) -> int:
    number = unsigned(text)
    if number is None:
        raise Invalid(wrong)
    return number


def _ttl(text: bytes) -> int:
    """Up to 2^64 - 1 ms, as the seed has it (section 10, row 7)."""
    return _digits(text, messages.INVALID_TTL)


def _options(flags: Flags) -> tuple[int, int, int]:
    """Attempts, fails, priority; each 0 unless given."""
    attempts = unsigned(flags.get(b"max-attempts", b"0"), TRIES)
    if attempts is None:
        raise Invalid(messages.INVALID_MAX_ATTEMPTS)
    fails = unsigned(flags.get(b"max-fails", b"0"), TRIES)
    if fails is None:
        raise Invalid(messages.INVALID_MAX_FAILS)
    return attempts, fails, _priority(flags)


def _priority(flags: Flags) -> int:
    priority = signed(flags.get(b"priority", b"0"))
    if priority is None or not LOWEST <= priority <= HIGHEST:
        raise Invalid(messages.INVALID_PRIORITY)
    return priority


@lru_cache(maxsize=1_024)
def _policy(ttr: int, attempts: int, fails: int) -> Policy:
    """A `fail` is final unless max-fails allows more (6.3); a TTR that ends costs an attempt and nothing else (6.1)."""
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
    """One attempt, and nothing is kept: its result goes to whoever runs it (5.3)."""
    return Policy(0, 0, ttr / 1_000, Backoff.NONE, lease_expiry=LeaseExpiry.DROP)


@lru_cache(maxsize=1_024)
def _extra(ttl: int, time: float, fails: int) -> Extra:
    """Jobs added alike share it."""
    return Extra(protocol_data=WorkqData(ttl, time, fails), links=Links(ttl_s=ttl / 1_000))


_FOREGROUND: Final = Extra(protocol_data=WorkqData(), links=Links(foreground=True))
