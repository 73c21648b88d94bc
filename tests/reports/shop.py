"""A small shop: queues of two servers and protocols, with failures and deaths. Some names are hostile."""

import datetime as dt
from typing import Any

from crossdock.pipeline.objectives import Objective
from tests.reports.tables import Tables, at

HOSTILE = '<script>alert("x")</script>\x1b]0;title\x07\u202e&amp;'

OBJECTIVES = (Objective("mail", 5.0, 0.9, 1.0), Objective("billing", None, 0.99, 10.0))


def fill_shop(made: Tables) -> Tables:
    """On each of the last three days `mail` gets ten jobs: seven are done at once, one at its second attempt, one dies,
    and one stays. `billing` gets three jobs yesterday, one of which is done. An old queue is outside of the week."""
    second = dt.timedelta(seconds=1)
    made.job("old").push(at(20, 5)).lease(at(20, 5)).succeed(at(20, 5, 1))
    for before in (2, 1, 0):
        for n in range(10):
            begin = at(before, 5, n)
            job = made.job("mail", "welcome", jid=f"mail-{before}-{n}").push(begin)
            if n == 9:
                continue
            job.lease(begin + second / 2)
            if n == 7:
                job.fail(begin + second, "Timeout", f"no answer from 10.0.0.{before} in 30 s").lease(begin + 4 * second)
                job.succeed(begin + 10 * second)
            elif n == 8:
                job.fail(begin + 3 * second, "Refused", "no\nroute" if before else HOSTILE, dies=True)
            else:
                job.succeed(begin + 1.5 * second)
    for n in range(3):
        job = made.job("billing", HOSTILE, protocol="workq", server="beta", jid=HOSTILE if n else None).push(
            at(1, 9, n)
        )
        if n == 0:
            job.lease(at(1, 9, 1), HOSTILE).succeed(at(1, 10, 1))
    link = {"date": at().date(), "server": "alpha", "event": "pushed", "queue": "mail", "group_name": "b-1"}
    jobs: list[dict[str, Any]] = [
        {"number": 22, "lowest": 22},
        {"number": 23, "lowest": 22, "needs": [22]},
    ]  # the first two of the last day
    for n, row in enumerate(jobs):
        made.put("links", {**link, **row, "seq": n, "at": at(0, 5, n), "jid": f"mail-0-{n}", "highest": row["number"]})
    return made
