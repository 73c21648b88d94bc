"""The per-script form, which the original protocol document describes: one script per command (qless.md section 6).

The arguments are put into the order of the unified script, and the same functions execute the call. Where these raise
Denied, the reply is nil.
"""

from collections.abc import Sequence
from typing import Final

from crossdock.protocols.base import Dispatcher
from crossdock.protocols.redis.qless.arguments import Denied, QlessError
from crossdock.protocols.redis.qless.call import (
    PER_SCRIPT,
    CallHandler,
    Dialect,
    Grant,
    Publish,
    Reply,
    decode,
    no_grant,
)
from crossdock.protocols.redis.qless.perscript import jobs, sets
from crossdock.protocols.redis.qless.perscript.script import Script

#: The index of the data argument, the key included.
_DATA: Final = {"put": 3, "complete": 4, "fail": 5, "heartbeat": 3, "recur": 4}

#: Scripts that take the queue as a key.
_KEYED: Final = frozenset({"put", "pop", "peek"})

SCRIPTS: Final = {**jobs.SCRIPTS, **sets.SCRIPTS}


def call_handler(script: str, dialect: Dialect = PER_SCRIPT) -> CallHandler:
    """The function that executes calls of this script."""
    title, keyed, act, its_data = script.capitalize(), script in _KEYED, SCRIPTS[script], _DATA.get(script, -1)

    def answer(
        dispatcher: Dispatcher, keys: Sequence[bytes], args: Sequence[bytes], publish: Publish, grant: Grant = no_grant
    ) -> Reply:
        if keyed:
            if not keys:
                raise QlessError(f"{title}(): Expected 1 KEYS argument")
            if len(keys) > 1:
                raise QlessError(f"{title}(): Got {len(keys)}, expected 1 KEYS argument")
        elif keys:
            raise QlessError(f"{title}(): No Keys should be provided")
        # `recur` is several commands in one; only `recur on` has data.
        words = decode((*keys, *args), -1 if script == "recur" and args[:1] != [b"on"] else its_data)
        try:
            return act(Script(dispatcher, words, publish, dialect, grant))
        except Denied:
            return None

    return answer
