"""Renews the leases of jobs. It runs in the supervisor, where no task can keep it from running."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from crossdock import logs
from crossdock.client.errors import ClientError
from crossdock.worker.process import HeldJob

log: Final = logging.getLogger("crossdock.worker")

_JIDS_AT_MOST: Final = 1_000  #: in a request


class RenewingClient(Protocol):
    async def extend(self, jids: list[str], lease_s: float, /) -> list[str]: ...


class Renewer:
    """A lease is renewed when a third of its time has passed. It is lost if the server says so, or if its time is over
    before the server could be reached: then another worker may have the job."""

    def __init__(
        self,
        client: RenewingClient,
        lease_s: float,
        held: Callable[[], Iterable[HeldJob]],
        *,
        lost: Callable[[HeldJob], None],
        reached: Callable[[], None],
        unreachable: Callable[[ClientError], None],
    ) -> None:
        self._client = client
        self._lease_s = lease_s
        self._held = held
        self._lost, self._reached, self._unreachable = lost, reached, unreachable

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / 10)
            await self.renew()

    async def renew(self) -> None:
        due = time.monotonic() + self._lease_s * 2 / 3
        old = [held for held in self._held() if held.expires < due and not (held.lost or held.settling)]
        for first in range(0, len(old), _JIDS_AT_MOST):
            await self._extend(old[first : first + _JIDS_AT_MOST])

    async def _extend(self, some: list[HeldJob]) -> None:
        asked = time.monotonic()
        try:
            lost = set(await self._client.extend([held.job.jid for held in some], self._lease_s))
        except ClientError as error:
            self._unreachable(error)
            now = time.monotonic()
            for held in some:
                if held.expires < now:
                    self._lose(held, "it expired while the server could not be reached")
            return
        self._reached()
        for held in some:
            if held.job.jid in lost:
                self._lose(held, "the job was cancelled, removed, or given to another worker")
            else:
                held.expires = asked + self._lease_s

    def _lose(self, held: HeldJob, why: str) -> None:
        if held.settling:  # it was settled meanwhile
            return
        held.lost = True
        job = held.job
        logs.event(log, logging.WARNING, "lease-lost", f"the lease of a job is lost: {why}", jid=job.jid, kind=job.kind)
        self._lost(held)
