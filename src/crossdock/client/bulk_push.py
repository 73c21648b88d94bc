"""The bookkeeping of `push_many`, without input and output: which jobs go into which request, and which must be sent
again."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from crossdock.client.call import is_full, refusal
from crossdock.client.encode import job_text
from crossdock.client.errors import (
    Broken,
    ClientError,
    InvalidJob,
    NoServer,
    PayloadTooLarge,
    PushRefused,
    Refused,
    ServerFull,
    Unsupported,
)
from crossdock.client.jobs import NewJob
from crossdock.client.wire import Features, Reply

#: Jobs and bytes of one PUSHB, which the server handles between other clients' requests.
JOBS: Final = 1_000
BYTES: Final = 256 * 1024
#: Requests under way on one connection. The server works on one while the client writes the next.
WINDOW: Final = 4
_FRAME: Final = 16

#: Errors that are made from their text alone.
_WITH_TEXT: Final = (Broken, InvalidJob, NoServer, PayloadTooLarge, Refused, ServerFull)

_refusals: Final = msgspec.json.Decoder(dict[str, str]).decode


class _Sent(NamedTuple):
    jobs: list[NewJob]
    once: bool  #: whether they may be sent again


class BulkPush:
    """Jobs on their way. Replies come in the order of the requests."""

    def __init__(self, jobs: Iterable[NewJob]) -> None:
        self._jobs: Iterator[NewJob] = iter(jobs)
        self._front: deque[NewJob] = deque(_first(self._jobs))  #: jobs that come before the others, perhaps again
        self._jids = [job.jid for job in self._front]
        self._sent: deque[_Sent] = deque()
        self._refused: dict[str, str] = {}
        self._invalid: ClientError | None = None
        self.accepted = 0  #: jobs that the server has confirmed
        self.full: ServerFull | None = None  #: jobs were refused because the server is full; try later

    @property
    def waiting(self) -> int:
        """Requests without a reply."""
        return len(self._sent)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to send and no reply left to read."""
        return not self._front and not self._sent and self._invalid is None

    def next_line(self, features: Features) -> bytes | None:
        """The next request, which is to be sent. None: no job is left, or the server is full, or there is an error that
        `result` raises."""
        if self.full is not None or self._invalid is not None:
            return None
        front, source, jids = self._front, self._jobs, self._jids
        texts: list[bytes] = []
        jobs: list[NewJob] = []
        size, most = _FRAME, min(BYTES, features.job_bytes)
        while size < most and len(jobs) < JOBS:
            if front:
                job = front.popleft()
            else:
                try:
                    following = next(source, None)
                except ClientError as error:  # of another call, in the caller's generator
                    self._invalid = error
                    break
                if following is None:
                    break
                job = following
                jids.append(job.jid)
            try:
                text = job_text(job, features)
            except (InvalidJob, Unsupported) as error:
                front.appendleft(job)
                if not jobs:
                    self._invalid = error
                break
            if jobs and size + len(text) >= most:
                front.appendleft(job)
                break
            jobs.append(job)
            texts.append(text)
            size += len(text) + 1
        if not jobs:
            return None
        self._sent.append(_Sent(jobs, features.once))
        return b"PUSHB [%b]\r\n" % b",".join(texts)

    def reply(self, reply: Reply) -> None:
        """The reply to the oldest request. Raises the server's error."""
        if reply.mark == "-":
            raise refusal(reply.body or b"")
        try:
            refused = _refusals(reply.body or b"")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Broken(f"invalid reply from the server: {error}") from error
        jobs = self._sent.popleft().jobs
        full = {jid: why for jid, why in refused.items() if is_full(why)}
        if full:
            self._front.extend(job for job in jobs if job.jid in full)
            self.full = ServerFull(next(iter(full.values())))
        self._refused.update((jid, why) for jid, why in refused.items() if jid not in full)
        self.accepted += len(jobs) - len(refused)

    def lost(self) -> bool:
        """The connection was lost: requests without a reply are sent again. False: some of them must not be, because
        the server may have executed them."""
        parts = list(self._sent)
        self._sent.clear()
        for part in reversed(parts):
            self._front.extendleft(reversed(part.jobs))
        return all(part.once for part in parts)

    def given_up(self, error: ClientError) -> ClientError:
        """The error of the call when jobs are left. It says how many were pushed."""
        if not self.accepted or type(error) not in _WITH_TEXT:
            return error
        return type(error)(f"{error}; {self.accepted} jobs before it were pushed")

    def result(self) -> list[str]:
        """The IDs of all jobs. Raises PushRefused, InvalidJob or Unsupported."""
        if self._invalid is not None:
            raise self.given_up(self._invalid)
        if self._refused:
            raise PushRefused(self._refused, self.accepted)
        return self._jids


def _first(jobs: Iterator[NewJob]) -> list[NewJob]:
    job = next(jobs, None)
    return [] if job is None else [job]
