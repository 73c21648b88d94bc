"""Buffers of workers and allocators: filled, emptied, lost, put on a queue."""

from math import inf, nextafter

from crossdock.model.clock import Now
from crossdock.model.commands import resqu as b
from tests.model.resqu_reference.jobs import Buffer, Job
from tests.model.resqu_reference.outcomes import Outcomes


class Buffers(Outcomes):
    def fill(self, command: b.FillBuffer, now: Now) -> None:
        self._advance_time(now)
        self._lost(command.key)
        self.buffers[command.key] = Buffer(command.number, command.token, command.text)

    def _lost(self, key: str) -> None:
        buffer = self.buffers.get(key)
        job = self.jobs.get(buffer.number) if buffer is not None else None
        if buffer is not None and job is not None and self._in_buffer(job) is buffer:
            self._return_to_queue(job, counted=True)

    def _held_job(self, buffer: Buffer) -> Job | None:
        """The job in an allocator's buffer, if it is still held there."""
        job = self.jobs.get(buffer.number)
        return job if job is not None and not buffer.token and not buffer.over and job.state == "held" else None

    def lose(self, command: b.LoseBuffer, now: Now) -> None:
        buffer = self.buffers.get(command.key)
        if buffer is not None and self._in_buffer(self.jobs.get(buffer.number)) is buffer:
            self._advance_time(now)
            self._lost(command.key)

    def empty(self, command: b.EmptyBuffer, now: Now) -> bytes | None:
        buffer = self.buffers.get(command.key)
        if buffer is None:
            return None
        self._advance_time(now)
        job = self._held_job(buffer)
        if job is not None:
            job.state, job.sort_key = "ready", (self.at, job.number)
        elif command.lost or buffer.said == "again":
            self._lost(command.key)
        elif (held := self.jobs.get(buffer.number)) is not None and self._in_buffer(held) is buffer:
            self._remove(held, now)
        del self.buffers[command.key]
        return buffer.text

    def take_next(self, command: b.TakeNext, now: Now) -> int | None:
        waiting = self.ready(command.queue)
        if not waiting:
            return None
        self._advance_time(now)
        waiting[0].state = "held"
        return waiting[0].number

    def discard(self, command: b.DiscardBuffer, now: Now) -> bool:
        buffer = self.buffers.get(command.key)
        if buffer is None or buffer.text != command.text:
            return False
        self._advance_time(now)
        job = self._held_job(buffer)
        del self.buffers[command.key]
        if job is not None:
            self._remove(job, now)
        return True

    def put_on(self, command: b.PutOn, now: Now) -> bytes | None:
        buffer = self.buffers.get(command.key)
        if buffer is None:
            return None
        self._advance_time(now)
        job = self._held_job(buffer)
        if job is not None:
            self.at = nextafter(self.at, inf)
            job.queue, job.state, job.sort_key = command.queue, "ready", (self.at, job.number)
        else:
            self._lost(command.key)
        del self.buffers[command.key]
        return buffer.text
