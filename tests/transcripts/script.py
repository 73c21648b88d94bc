r"""Transcripts: what clients send, what the server must reply, and when.

    C: PUSH {}          a client's line; CRLF follows
    c: PUSH {}          the same, ended by LF alone
    C> PUSH {"ji        bytes without a line's end
    R: SET a "b c"      a Redis request, as an array of strings; "" is an empty one
    S: +OK              the server's line, exactly
    S$ {"a":1}          a bulk reply with this body
    S~ -ERR inv.*       a line that matches a regular expression; S$~ the same for a bulk body
    S!                  the server closes; every other connection must be open at the end
    X                   the client closes
    T+ 2.5              seconds pass; the replies so far must be exactly those above
    @ hello 2 w1        connection 2, past its handshake, of worker w1 (or of none)
    @ via 3 faktory     connection 3 uses that protocol, not the transcript's own
    @ jitter 29         the set-up, see `Stage`; most settings stand before the first line of a conversation
    # …                 a comment

`C2:`, `S2:`, `X2` belong to connection 2. A connection opens where it is first named; its output includes the greeting.
`<<a*300>>` in a client's line or a reply means 300 times `a`, `<<0xff00>>` means raw bytes.
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
    how: str  #: the characters after the S: `:`, `~`, `$`, `$~` or `!`
    text: bytes


class Close(NamedTuple):
    peer: str


class NotHandled(NamedTuple):
    seconds: float


class Set(NamedTuple):
    words: list[str]


Step = Send | Expect | Close | NotHandled | Set


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
        return NotHandled(float(seconds))
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
    """The steps of a transcript. Lines that a client sends in a row are one step."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [_step(line) for line in lines if line and not line.startswith("#")]
