"""Valid calls of the unified API, and invalid variants of each: truncated, or with a wrong argument."""

from collections.abc import Iterator
from typing import Final

#: A job in every state: running, waiting, scheduled, depending, failed, complete, recurring. The first number is the
#: time.
SETTING: Final = """
put 10 w q run K {} 0 | put 11 w q last K {} 0 retries 0 | pop 12 q w 2 | put 13 w q wait K {"a":1} 0 tags ["x"]
put 14 w q later K {} 100 | put 15 w q dep K {} 0 depends ["wait"] | put 16 w q2 bad K {} 0 | pop 17 q2 w 1
fail 18 bad w group message | put 19 w q3 done K {} 0 | pop 20 q3 w 1 | complete 21 done w q3 {}
recur 22 q rec K {} interval 60 500 | track 23 track wait
"""

#: Without their time.
RIGHT: Final = """
put w q new K {} 0 priority 1 tags ["a"] retries 3 depends ["wait"] | put w q wait K {} 10 | get wait | get absent
requeue w q wait K {} 0 priority 1 | requeue w q absent K {} 0 | multiget wait run | cancel wait dep | cancel absent
cancel done | cancel bad | priority wait 3 | priority absent 3 | priority run 3 | depends dep on later
depends dep off wait | depends dep off all | depends wait on later | depends absent on later | tag add wait y z
tag remove wait x | tag get x 0 5 | tag top 0 5 | tag add absent y | track | track track run | track untrack wait
track track absent | log wait said {"a":1} | log absent said | pop q w2 5 | pop none w2 5 | peek q 5 | peek q 0 5
jobs complete 0 5 | jobs running q 0 5 | jobs stalled q 0 5 | jobs scheduled q 0 5 | jobs depends q 0 5
jobs recurring q 0 5 | jobs waiting q | queues | queues q | queues none | length q | stats q 0 | failed
failed group 0 5 | failed none | unfail q group 5 | unfail q none | pause q | unpause q | queue.forget q
complete run w q {} | complete run w q {} next q9 delay 5 | complete run w q {} next q9 depends ["wait"]
complete run w q {} next q9 delay 5 depends ["wait"] | complete run w q {} delay 5
complete run w q {} depends ["wait"] | complete wait w q {} | complete absent w q {} | complete run w2 q {}
complete run w q9 {} | complete done w q3 {} | fail run w g m {} | fail run w2 g m | fail wait w g m
fail absent w g m | retry run q w 0 g m | retry last q w | retry run q w2 | retry wait q w | retry absent q w
retry run q w 10 | heartbeat run w {} | heartbeat run w2 | heartbeat wait w | heartbeat absent w | timeout run last
timeout wait | timeout absent | workers | workers w | worker.deregister w | config.get | config.get heartbeat
config.get none | config.set heartbeat 5 | config.unset heartbeat
recur q new K {} interval 60 0 priority 1 tags ["a"] retries 1 backlog 2 | recur q rec K {} interval 60 0
recur q new K {} other 60 0 | unrecur rec | unrecur absent | recur.get rec | recur.get absent
recur.update rec priority 1 interval 30 retries 2 data {} klass L queue q7 backlog 3 | recur.update rec nonsense 1
recur.update absent priority 1 | recur.tag rec a b | recur.untag rec a | recur.tag absent a | recur.untag absent a
queue.throttle.get q | queue.throttle.set q 3 | throttle.set t 3 60 | throttle.get t | throttle.delete t
throttle.locks ql:q:q | throttle.pending t | throttle.ttl t | throttle.release ql:q:q run | nonsense x
"""

WRONG: Final = ("", "x", '"s"', "3", "false", "null", "0.5")


def calls(text: str) -> list[list[str]]:
    return [each.split() for line in text.strip().splitlines() for each in line.split("|")]


def spoilt(right: list[list[str]]) -> Iterator[list[str]]:
    """All variants of the calls, including each valid call once."""
    seen: set[tuple[str, ...]] = set()
    for command, *words in right:
        some = [words[:length] for length in range(len(words) + 1)]
        some += [[*words, "more"], [*words, "and", "more"]]
        some += [[*words[:at], wrong, *words[at + 1 :]] for at in range(len(words)) for wrong in WRONG]
        for each in some:
            if (command, *each) not in seen:
                seen.add((command, *each))
                yield [command, *each]
