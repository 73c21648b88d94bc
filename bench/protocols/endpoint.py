"""Finds out which qless script a running Redis server has, and how to call it."""

import re
import time
from pathlib import Path
from secrets import token_hex
from typing import Final

import msgspec

from bench.replies import Unexpected
from bench.target import Target, connect, read_line
from crossdock.protocols.redis.qless.library import hashes

#: Dialects with the same calls. Others have other commands or another order of arguments.
_SPOKEN: Final = ("qless", "qless-throttles")
_FUNCTION: Final = "qless"
_HASH: Final = re.compile(r"[0-9a-f]{40}")


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def with_script(target: Target, named: str = "") -> Target:
    """The target with the call of its script: FCALL if it has the function, else EVALSHA of a loaded script.

    `named` is a function, a hash, or a file that is loaded first. Raises Unexpected if there is none.
    """
    if named:
        found = _named(target, named)
    else:
        found = _calls(target, "FCALL", _FUNCTION) or _calls(target, "EVALSHA", _loaded(target))
    if found is None:
        asked = f"does not answer {named}" if named else "has no script of qless"
        raise Unexpected(
            f"redis://{target.host}:{target.port} {asked}: load one there (SCRIPT LOAD, FUNCTION LOAD), "
            "or name it by --script: a function, a hash, or a file with its text"
        )
    return found


def _named(target: Target, named: str) -> Target | None:
    if Path(named).is_file():
        text = Path(named).read_bytes()
        reply = _ask(target, b"SCRIPT", b"LOAD", text)
        if not reply.startswith(b"$"):
            raise Unexpected(f"{named} was not loaded: {reply.decode('utf-8', 'replace')}")
        return _calls(target, "EVALSHA", reply.split(b"\r\n")[1].decode())
    return _calls(target, "EVALSHA" if _HASH.fullmatch(named) else "FCALL", named)


def _calls(target: Target, verb: str, script: str) -> Target | None:
    """The target with this script, if it returns 0 for the length of an unused queue."""
    if not script:
        return None
    words = (b"length", b"%.6f" % time.time(), b"bench-" + token_hex(4).encode())
    reply = _ask(target, verb.encode(), script.encode(), b"0", *words)
    return msgspec.structs.replace(target, call=verb, script=script) if reply == b":0" else None


def _loaded(target: Target) -> str:
    """The first published script in the script cache of the endpoint."""
    known = [sha for sha, dialect in hashes().items() if dialect in _SPOKEN]
    flags = _ask(target, b"SCRIPT", b"EXISTS", *(sha.encode() for sha in known)).split(b"\r\n")[1:]
    return next((sha for sha, flag in zip(known, flags, strict=False) if flag == b":1"), "")


def _ask(target: Target, *words: bytes) -> bytes:
    """A reply of one line, of a bulk string in two, or of a flat list."""
    with connect(target) as connection:
        connection.sendall(command(*words))
        reply = read_line(connection)
        more = 1 if reply[:1] == b"$" and reply != b"$-1" else int(reply[1:]) if reply[:1] == b"*" else 0
        return b"\r\n".join([reply, *(read_line(connection) for _ in range(more))])
