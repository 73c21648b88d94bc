"""Jids of jobs that were pushed with `once`: a client that lost a reply may push again, and adds nothing.

Only the apply functions of `records.once` change it.
"""

import hashlib
from collections import deque
from typing import Final

#: A longer jid is stored by its hash, so that each entry takes the same memory.
_JID_CHARS: Final = 40

#: Old jids that one push forgets beyond those it adds. Forgetting a million at once would block all clients.
_FORGOTTEN: Final = 1_000

KEEP_S: Final = 3_600.0
AT_MOST: Final = 1_000_000


class OncePushes:
    """Jids and when they were pushed (steady). The oldest are forgotten first, by age and by number.

    The order is kept in two deques: finding the first entry of a dict takes long after many entries before it were
    removed.
    """

    __slots__ = ("_ages", "_order", "at_most", "jids", "keep_s")

    def __init__(self, keep_s: float = KEEP_S, at_most: int = AT_MOST, jids: dict[str, float] | None = None) -> None:
        self.keep_s = keep_s
        self.at_most = at_most
        self.jids = {} if jids is None else jids
        self._order = deque(self.jids)
        self._ages = deque(self.jids.values())

    def emptied(self) -> "OncePushes":
        return OncePushes(self.keep_s, self.at_most)

    def has(self, jid: str, steady: float) -> bool:
        since = self.jids.get(_key(jid))
        return since is not None and since + self.keep_s > steady

    def remember(self, jids: list[str], steady: float) -> None:
        known, order, ages = self.jids, self._order, self._ages
        for jid in jids:
            key = _key(jid)
            while key in known:  # it is too old, and so are all before it
                self._forget()
            known[key] = steady
            order.append(key)
            ages.append(steady)
        over = steady - self.keep_s
        for _ in range(len(jids) + _FORGOTTEN):
            if not ages or (len(ages) <= self.at_most and ages[0] > over):
                break
            self._forget()

    def _forget(self) -> None:
        self._ages.popleft()
        del self.jids[self._order.popleft()]


def _key(jid: str) -> str:
    """A hash is longer than every jid that is stored as it is, so the two cannot be confused."""
    return jid if len(jid) <= _JID_CHARS else "#" + hashlib.blake2b(jid.encode(), digest_size=20).hexdigest()
