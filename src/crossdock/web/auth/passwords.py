"""Checks the password of the dashboard, which the settings have as plain text or as an argon2id hash."""

import asyncio
import hashlib
import hmac
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from crossdock.web.rate_limits import RateLimit

#: A check takes 64 MiB and some 50 ms of a core.
_CHECKS_AT_ONCE: Final = 2

#: Longest password that is checked.
PASSWORD_CHARACTERS: Final = 1_024

_TRIES_PER_MINUTE: Final = 5


def make_hash(password: str) -> str:
    """An argon2id hash with a random salt, for `http.password`."""
    return PasswordHasher().hash(password)


class Passwords:
    def __init__(self, expected: str) -> None:
        self._expected = expected
        self._checks = asyncio.Semaphore(_CHECKS_AT_ONCE)
        self._tries = RateLimit(_TRIES_PER_MINUTE / 60, _TRIES_PER_MINUTE)

    @property
    def are_required(self) -> bool:
        return bool(self._expected)

    def wait_s(self, address: str) -> int:
        """Count a try. 0 if this address may try now, else the seconds until it may."""
        return self._tries.wait_s(address)

    async def accepts(self, password: str) -> bool:
        """Takes the same time for every wrong password. Hashing runs in a thread: it would stop all other requests."""
        if not self._expected or len(password) > PASSWORD_CHARACTERS:
            return False
        async with self._checks:
            return await asyncio.to_thread(_matches, self._expected, password)


def _matches(expected: str, password: str) -> bool:
    if not expected.startswith("$argon2"):
        return hmac.compare_digest(_digest(expected), _digest(password))
    try:
        return PasswordHasher().verify(expected, password)
    except (VerificationError, InvalidHashError):
        return False


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
