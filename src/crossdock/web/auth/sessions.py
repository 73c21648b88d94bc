"""Sessions of people that have signed in. They are in memory only, so a restart ends them."""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

IDLE_S: Final = 30 * 60
LONGEST_S: Final = 8 * 3600

#: Beyond it the session that has been idle for longest ends.
SESSIONS: Final = 1_000


class Session:
    def __init__(self, key: bytes, user: str, now: float) -> None:
        self.key = key
        self.user = user
        self.since = now
        self.used = now


class Sessions:
    """A session's ID is known to the browser only. Here it is kept as a hash."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._by_key: OrderedDict[bytes, Session] = OrderedDict()  # the one used longest ago first

    def open(self, user: str) -> str:
        """Begin a session and return its ID, 256 random bits."""
        ident = secrets.token_urlsafe(32)
        key = _key(ident)
        self._by_key[key] = Session(key, user, self._clock())
        if len(self._by_key) > SESSIONS:
            self._by_key.popitem(last=False)
        return ident

    def find(self, ident: str) -> Session | None:
        """The session with that ID, if it has not ended. Its idle time begins again."""
        key, now = _key(ident), self._clock()
        found = self._by_key.get(key)
        if found is None:
            return None
        if now - found.used > IDLE_S or now - found.since > LONGEST_S:
            del self._by_key[key]
            return None
        found.used = now
        self._by_key.move_to_end(key)
        return found

    def close(self, session: Session) -> None:
        self._by_key.pop(session.key, None)

    def csrf_token(self, session: Session | None) -> str:
        """The token that forms of this session carry. Without sign-in all pages have the same one."""
        key = session.key if session is not None else b"no session"
        return hmac.new(self._secret, key, hashlib.sha256).hexdigest()

    def __len__(self) -> int:
        return len(self._by_key)


def _key(ident: str) -> bytes:
    return hashlib.sha256(ident.encode("utf-8", "surrogateescape")).digest()
