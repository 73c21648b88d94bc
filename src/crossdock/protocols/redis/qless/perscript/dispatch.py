"""The per-script form, which the seed describes: a script a command, `now` where each has it (protocol page, qless 6).

A call is put into the unified order and carried out by the same functions; where those deny, the answer is nothing.
"""

from collections.abc import Sequence
from typing import Final

from crossdock.protocols.base import Dispatcher
from crossdock.protocols.redis.qless.arguments import Denied, Raised
from crossdock.protocols.redis.qless.call import (
    PER_SCRIPT,
    CallHandler,
    Dialect,
    Grant,
    Publish,
    Reply,
    decode,
    unheard,
)
from crossdock.protocols.redis.qless.perscript import jobs, sets
from crossdock.protocols.redis.qless.perscript.script import Script

#: Which argument is a job's data.
_DATA: Final = {"put": 3, "complete": 4, "fail": 5, "heartbeat": 3, "recur": 4}

#: Scripts whose first argument is a key: the queue.
_KEYED: Final = frozenset({"put", "pop", "peek"})

SCRIPTS: Final = {**jobs.SCRIPTS, **sets.SCRIPTS}


def answering(script: str, dialect: Dialect = PER_SCRIPT) -> CallHandler:
    """Who carries out the calls of that script."""
    title, keyed, act, its_data = script.capitalize(), script in _KEYED, SCRIPTS[script], _DATA.get(script, -1)

    def answer(
        dispatcher: Dispatcher, keys: Sequence[bytes], args: Sequence[bytes], publish: Publish, grant: Grant = unheard
    ) -> Reply:
        if keyed:
            if not keys:
                raise Raised(f"{title}(): Expected 1 KEYS argument")
            if len(keys) > 1:
                raise Raised(f"{title}(): Got {len(keys)}, expected 1 KEYS argument")
        elif keys:
            raise Raised(f"{title}(): No Keys should be provided")
        # Of `recur` the first word says what is to be done, and only one of its meanings has data.
        words = decode((*keys, *args), -1 if script == "recur" and args[:1] != [b"on"] else its_data)
        try:
            return act(Script(dispatcher, words, publish, dialect, grant))
        except Denied:
            return None

    return answer
