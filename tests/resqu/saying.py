"""Commands of Resqu's clients, allocators and workers, for tests without a socket."""

import json
from typing import Any

from crossdock.protocols.redis.resqu import scripts
from tests.resqu.speaking import Direct

P = "resqu-v4:"
SHA = {dialect: sha for sha, dialect in scripts.KNOWN.items()}
BATCH = "s:Import:54e3f968"


def job(ident: str = "j1", **members: Any) -> str:
    return json.dumps({"class": "C", "sourceId": "s", "name": "N", **members, "id": ident, "queue_time": 1794765301.5})


def base(**members: Any) -> str:
    return json.dumps({"class": "C", "sourceId": "s", "name": "N", **members})


def script(direct: Direct, name: str, keys: list[str], *args: str, connection: str = "c") -> Any:
    return direct.say(connection, "EVALSHA", SHA[name], str(len(keys)), *(P + key for key in keys), *args)


def push(direct: Direct, *idents: str, **members: Any) -> None:
    for ident in idents:
        direct.say("c", "LPUSH", f"{P}unassigned", job(ident, **members))


def worker(direct: Direct, name: str = "n~p~s~1", pool: str = "p") -> None:
    assert direct.say("w", "SADD", f"{P}process:n:pool:{pool}", name) == 1


def commit(direct: Direct, batch: str, jobs: int) -> None:
    key = f"uncommitted:{batch}"
    assert script(direct, scripts.BATCH_INIT, [key], job(f"{batch}-1", name="Import")) == 1
    for number in range(2, jobs + 1):
        assert direct.say("c", "LPUSHX", P + key, job(f"{batch}-{number}", name="Import")) == number
    assert direct.say("c", "EXPIRE", P + key, "600") == 1
    assert direct.say("c", "TTL", P + key) == 600
    assert script(direct, scripts.BATCH_COMMIT, ["committed", f"committed:{batch}", key], batch) >= 1


def work_off(direct: Direct, name: str, batch: str) -> list[str]:
    done = []
    while (text := direct.say("w", "RPOPLPUSH", f"{P}committed:{batch}", f"{P}worker:{name}")) is not None:
        done.append(json.loads(text)["id"])
        assert direct.say("w", "RPOP", f"{P}worker:{name}") == text
    return done


def insert(direct: Direct, at: int, interval: str = "P0Y0M0DT0H0M100S", **members: Any) -> Any:
    """A plan `s_p`."""
    plan = base(**members, id="s_p", nextRun=at, recurrenceInterval=interval)
    keys = ["plan:s_p", "plan_schedule", f"plan_schedule:{at}", "plan_list:s"]
    return script(direct, scripts.PLAN_INSERT, keys, plan, str(at), "s_p")
