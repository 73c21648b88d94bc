r"""Conversations as text: what clients send, what the server must say, and when.

    C: PUSH {}          a client's line; CRLF follows
    c: PUSH {}          the same, ended by LF alone
    C> PUSH {"ji        bytes without a line's end
    R: SET a "b c"      a request of the Redis door, as an array of strings; "" is an empty one
    S: +OK              the server's line, exactly
    S$ {"a":1}          a bulk reply with this body
    S~ -ERR inv.*       a line that matches a regular expression; S$~ the same for a bulk body
    S!                  the server closes; every connection must otherwise be open at the end
    X                   the client closes
    T+ 2.5              seconds pass; what was said until here must be exactly what stands above
    @ hello 2 w1        connection 2, past its handshake, of worker w1 (or of none)
    @ via 3 faktory     connection 3 goes to that door, not to the one the transcript is about
    @ jitter 29         the set-up, see `Stage`; most settings stand before the first line of a conversation
    # …                 a comment

`C2:`, `S2:`, `X2` are those of connection 2. A connection begins where it is first named; its greeting is part of it.
`<<a*300>>` in a client's line or a reply stands for 300 times `a`, `<<0xff00>>` for raw bytes.
"""

import re
from pathlib import Path
from typing import NamedTuple

_LINE = re.compile(r"([CcR]|S)(\d*)(:|>|~|\$~|\$|!)(?: (.*))?|(X)(\d*)|(T\+) ([\d.]+)|(@) (.*)")
_WORD = re.compile(r'"([^"]*)"|([^\s"]+)')
_MACRO = re.compile(rb"<<(?:([^<>*]+)\*(\d+)|0x([0-9a-f]+))>>")


class Send(NamedTuple):
    peer: str
    data: bytes


class Expect(NamedTuple):
    peer: str
    how: str  #: what followed the S: one of `:`, `~`, `$`, `$~`, `!`
    text: bytes


class Close(NamedTuple):
    peer: str


class Pass(NamedTuple):
    seconds: float


class Set(NamedTuple):
    words: list[str]


Step = Send | Expect | Close | Pass | Set


def _plain(text: str) -> bytes:
    return _MACRO.sub(lambda m: bytes.fromhex(m[3].decode()) if m[3] else m[1] * int(m[2]), text.encode())


def _step(line: str) -> Step:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"not a line of a transcript: {line!r}")
    who, peer, how, text, closes, closer, passes, seconds, _, words = match.groups()
    if closes:
        return Close(closer or "1")
    if passes:
        return Pass(float(seconds))
    if not who:
        return Set(words.split())
    peer, raw = peer or "1", _plain(text or "")
    if who == "S":
        return Expect(peer, how, raw)
    if who == "R":
        return Send(peer, _array(text or ""))
    return Send(peer, raw if how == ">" else raw + (b"\r\n" if who == "C" else b"\n"))


def _array(text: str) -> bytes:
    words = [_plain(quoted or plain) for quoted, plain in _WORD.findall(text)]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def read(path: Path) -> list[Step]:
    """The steps of a transcript; what a client sends in a row is one step, however its lines are answered."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [_step(line) for line in lines if line and not line.startswith("#")]
