"""Bad input of each protocol, one of each kind; `bad_input` repeats it."""

from typing import Final

LINE: Final = 16 * 1024 * 1024


def _long(head: bytes, each: bytes, tail: bytes, size: int = LINE) -> bytes:
    """Repeat the item until a line of this size is full."""
    return head + each * ((size - len(head) - len(tail)) // len(each)) + tail


def _request(*words: bytes) -> bytes:
    """Encode a request as Redis clients do."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def _put(data: bytes, *more: bytes, kind: bytes = b"k", delay: bytes = b"0") -> bytes:
    return _request(b"FCALL", b"qless", b"0", b"put", b"1", b"w", b"q", b"j", kind, data, delay, *more)


#: Each is refused, or names a job that does not exist.
FAKTORY: Final = {
    "unknown verbs": b"NONSENSE 1\r\n",
    "no JSON": b"PUSH {\r\n",
    "wrong types": b'PUSH {"jid":7,"jobtype":[],"args":{}}\r\n',
    "ACK of an unknown job": b'ACK {"jid":"no-such-job"}\r\n',
    "deep JSON": b'PUSH {"jid":"12345678","jobtype":"T","args":' + b"[" * 5_000 + b"]" * 5_000 + b"}\r\n",
    "PUSH of 60 KB": _long(b'PUSH {"jid":"1","jobtype":"T","args":[', b"[],", b"1]}\r\n", 60_000),
    "PUSH of 300 KB": _long(b'PUSH {"jid":"1","jobtype":"T","args":[', b"[],", b"1]}\r\n", 300_000),
    "PUSH of a string": _long(b'PUSH {"jid":"1","jobtype":"T","args":["', b"a", b'"]}\r\n'),
    "PUSH of lists": _long(b'PUSH {"jid":"1","jobtype":"T","args":[', b"[],", b"1]}\r\n"),
    "PUSH of texts, deep": _long(
        b'PUSH {"jid":"12345678","jobtype":"T","args":[', b'"",', b"[" * 70 + b"]" * 70 + b"]}\r\n"
    ),
    "PUSH, not UTF-8": _long(b'PUSH {"jid":"1","jobtype":"T","args":["', "é".encode(), b'\xff"]}\r\n'),
    "PUSHB of 1,000 {}": b"PUSHB [" + b"{}," * 999 + b"{}]\r\n",
    "PUSHB of 5 million {}": _long(b"PUSHB [", b"{},", b"{}]\r\n"),
    "PUSHB with a wrong end": _long(b"PUSHB [", b"{},", b"7]\r\n"),
    "ACK of keys": _long(b"ACK {", b'"a":1,', b'"b":1}\r\n'),
    "FAIL of keys, 1 MB": _long(b"FAIL {", b'"a":1,', b'"b":1}\r\n', 1_000_000),
    "MUTATE of jids": _long(
        b'MUTATE {"cmd":"kill","target":"retries","filter":{"jids":[', b'"12345678",', b'"1"]}}\r\n'
    ),
    "a line too long": _long(b'PUSH {"jid":"12345678","jobtype":"T","args":["', b"a", b'"]}\r\n', LINE + 100_000),
}

#: Redis' limit of a request, minus the rest of the request.
_VALUE: Final = LINE - 1_000
_ID: Final = b"61a444a0-6128-41c0-8078-cc757d3bd2d8"

_REDIS: Final = {
    "unknown commands": _request(b"NONSENSE"),
    "an unknown hash": _request(b"EVALSHA", b"0" * 40, b"0"),
    "no time": _request(b"FCALL", b"qless", b"0", b"put", b"x"),
    "EVAL of 60 KB": _request(b"EVAL", b"a" * 60_000, b"0"),
    "EVAL": _request(b"EVAL", b"a" * _VALUE, b"0"),
    "SCRIPT LOAD": _request(b"SCRIPT", b"LOAD", b"a" * _VALUE),
    "put of lists, 300 KB": _put(_long(b"[", b"[],", b"7", 300_000)),
    "put of lists": _put(_long(b"[", b"[],", b"7", _VALUE)),
    "put of lists, deep": _put(_long(b"[", b"[],", b"[" * 70 + b"]" * 70 + b"]", _VALUE)),
    "put with a wrong delay": _put(_long(b'"', b"a", b'"', _VALUE), delay=b"x"),
    "put, not UTF-8": _put(b"{}", kind=_long(b"\xff", b"a", b"", _VALUE)),
    "put with tags": _put(b"{}", b"tags", _long(b"[", b'"",', b'""]', _VALUE)),
    "a million words": b"*1000001\r\n$8\r\nNONSENSE\r\n" + b"$0\r\n\r\n" * 1_000_000,
    "cancel of 24,000": _request(b"FCALL", b"qless", b"0", b"cancel", b"x", *[b"a"] * 24_000),
    "a string too long": b"*2\r\n$3\r\nGET\r\n" + _long(b"$%d\r\n" % (LINE + 1), b"a", b"\r\n"),
    "too big a request": _request(b"SET", *[b"a" * 60_000] * 300),
}

_MASENKO: Final = {
    "unknown verbs": b"NONSENSE\n",
    "no JSON": b"PUSH {\n",
    "an unknown verb, long": _long(b"NONSENSE ", b"a", b"\n"),
    "PUSH of 990 keys": b"PUSH {" + b"".join(b'"k%d":1,' % n for n in range(990)) + b'"queue":7}\n',
    "PUSH of lists": _long(b'PUSH {"payload":[', b"[],", b"7\n"),
    "PUSH of texts, deep": _long(b'PUSH {"payload":[', b'"",', b"[" * 70 + b"]" * 70 + b"]}\n"),
    "PUSH, not UTF-8": _long(b'PUSH {"payload":"', "é".encode(), b'\xff"}\n'),
    "PUSH of blockers": _long(b'PUSH {"blocked_by":[', b"1,", b'"x"]}\n'),
    "ACK of ids": _long(b'ACK {"id":[', b"7,", b"7]}\n"),
    "ATOMIC": b"ATOMIC\n" + _long(b'PUSH {"payload":[', b"[],", b"7\n") + b"DONE\n",
    "a line too long": _long(b'PUSH {"payload":"', b"a", b'"}\n', LINE + 100_000),
}

_WORKQ: Final = {
    "unknown commands": b"nonsense\r\n",
    "an unknown command, long": _long(b"nonsense ", b"a", b"\r\n", 1_000_000),
    "a wrong id": b"add 7 q 1 1 2\r\n",
    "flags": _long(b"add %b q 10 1000 5" % _ID, b" -priority=1", b"\r\n", 1_000_000),
    "names": _long(b"lease", b" a", b" 10\r\n", 1_000_000),
    "result of an unknown job": b"complete %b 1000000\r\n%b\r\n" % (_ID, b"a" * 1_000_000),
    "a line without an end": b"a" * 1_200_000,
}

OTHERS: Final = {"redis": _REDIS, "masenko": _MASENKO, "workq": _WORKQ}
