"""Replays the commands of the real server's allocators, workers and children.

The pushes of clients were not recorded, so each job is pushed here just before the pop that must find it. The engine
does the work of the scheduler by itself, so the scheduler's commands find nothing to do. Jobs that the engine released
have other IDs and times. The replay learns these when the jobs are popped, and uses them instead of the recorded ones.
"""

import json
import re
from typing import Any, Final

from crossdock.model.clock import Now
from tests.resqu.recording import Line, Null, Section
from tests.resqu.speaking import Direct, like
from tests.support.dispatcher import PlainDispatcher

P: Final = "resqu-v4:"
DEFER_ADD: Final = "b41f445ce957025d83be8dbc13dfb3526aabfdc8"
FINALIZE: Final = "97ab219769ea58a253d4a3ec787d62f5144ddfb3"
BATCH_INIT: Final = "05d3317f882a369c1e0e4fb5c8c4c9a36aa05565"
BATCH_COMMIT: Final = "989a65da06a228c7cf82f6856b13a9db90ddcbc8"
PLAN_INSERT: Final = "1277edc1645a391ac7c09501f12242426da7fda4"

SCHEDULER: Final = "conn7"
CUT: Final = ("resched1", "batch")  #: sections that were not recorded to their end
_TIME: Final = re.compile(r'"queue_time":([\d.]+)')


class Replay:
    def __init__(self, began: float = 1_794_765_363.0) -> None:
        self.direct = Direct(PlainDispatcher(now=Now(began, 1_000.0)))
        self.waiting: dict[str, Line] = {}
        self.learnt: dict[str, str] = {}  #: recorded texts and IDs, and those of the engine
        self.checked = 0

    def section(self, section: Section) -> None:
        lines = section.lines
        for index, line in enumerate(lines):
            if line.connection in self.waiting:
                self.answered(line.connection)
            if line.connection == SCHEDULER and line.words[0] != "SADD" and line.words[0] != "SREM":
                self.schedule(line)
            else:
                self.prepare(line, lines[index + 1 :])
                self.speak(line)
            for connection in [each for each in self.waiting if not self.direct.peers[each].is_waiting]:
                self.answered(connection)
        assert not self.waiting, f"{section.title}: no reply for {self.waiting}"
        if section.title in CUT:
            self.finish()

    def finish(self) -> None:
        """Finish the running jobs, because the recording of this section has no end."""
        for key in [key for key in self.direct.dispatcher.state.resqu.buffers if key.startswith("worker:")]:
            assert self.direct.say("finish", "RPOP", P + key)

    def schedule(self, line: Line) -> None:
        """The engine releases due jobs before Resqu's scheduler asks for them."""
        if line.words[0] == "ZRANGEBYSCORE":
            self.until(float(line.words[3]))
        if line.words[0] in ("ZRANGEBYSCORE", "LPOP", "LLEN", "DEL", "ZREM"):
            assert not self.direct.say(SCHEDULER, *line.words), line.text

    def prepare(self, line: Line, later: list[Line]) -> None:
        """Do what another process must have done for this reply."""
        words, reply = line.words, line.reply
        if words[0] == "BRPOPLPUSH" and words[1] == f"{P}unassigned" and isinstance(reply, str):
            self.until(float(_TIME.findall(reply)[0]))
            if not any(each.words[0] == "LPUSH" and each.words[2] == reply for each in later):
                self.enqueue(reply)
        if words[0] == "BRPOPLPUSH" and words[1] == f"{P}committed" and isinstance(reply, str):
            self.commit(reply, [line, *later])
        if words[:2] == ["EVALSHA", FINALIZE] and isinstance(reply, str):
            assert self.direct.say("client", "EVALSHA", DEFER_ADD, "2", *words[3:5], "running", reply) == 1

    def enqueue(self, text: str) -> None:
        uid = json.loads(text).get("unique", {}).get("uid")
        if uid:
            assert self.direct.say("client", "SETNX", f"{P}unique:{uid}:state", "queued") == 1
        assert self.direct.say("client", "LPUSH", f"{P}unassigned", text) >= 1

    def commit(self, batch: str, lines: list[Line]) -> None:
        """Create the batch with the jobs that are popped from it later, at least one."""
        taken = [each.reply for each in lines if each.words[:2] == ["RPOPLPUSH", f"{P}committed:{batch}"]]
        jobs = [each for each in taken if isinstance(each, str)]
        source, name, _ = batch.split(":")
        made = {"class": "JobPass", "sourceId": source, "name": name, "id": f"made-{batch}", "queue_time": 1}
        jobs = jobs or [json.dumps(made)]
        key = f"{P}uncommitted:{batch}"
        assert self.direct.say("client", "EVALSHA", BATCH_INIT, "1", key, jobs[0]) == 1
        for index, job in enumerate(jobs[1:], 2):
            assert self.direct.say("client", "LPUSHX", key, job) == index
        keys = (f"{P}committed", f"{P}committed:{batch}", key)
        assert self.direct.say("client", "EVALSHA", BATCH_COMMIT, "3", *keys, batch) == 1

    def speak(self, line: Line) -> None:
        words = [self.ours(word) for word in line.words]
        self.direct.ask(line.connection, *words)
        if line.reply == Null(array=True):
            self.direct.dispatcher.advance(float(words[-1]))
        self.waiting[line.connection] = line

    def answered(self, connection: str) -> None:
        line = self.waiting.pop(connection)
        said = self.direct.hear(connection)
        if isinstance(line.reply, str) and line.words[:2] == ["BRPOPLPUSH", f"{P}unassigned"] and said != line.reply:
            self.learn(line.reply, said)
        wanted = self.ours(line.reply)
        assert like(said, wanted), f"{line.text}\n  ours   {said!r}\n  theirs {wanted!r}"
        self.checked += 1

    def learn(self, theirs: str, ours: str) -> None:
        """A job that the engine released instead of the scheduler has another id and time."""
        one, other = json.loads(theirs), json.loads(ours)
        assert {**one, "id": 0, "queue_time": 0} == {**other, "id": 0, "queue_time": 0}, f"{theirs}\n{ours}"
        self.learnt[theirs] = ours
        self.learnt[one["id"]] = other["id"]

    def ours(self, value: Any) -> Any:
        return self.learnt.get(value, value) if isinstance(value, str) else value

    def until(self, wall: float) -> None:
        self.direct.dispatcher.advance(max(0.0, wall - self.direct.dispatcher.now.wall))
