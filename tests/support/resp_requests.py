"""Requests of a Redis client as bytes."""


def resp_request(name: bytes, args: list[bytes]) -> bytes:
    return b"*%d\r\n" % (len(args) + 1) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in [name, *args])
