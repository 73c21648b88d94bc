"""A strict reader of the RESP2 replies that Faktory uses (faktory.md section 1.3)."""


def replies(data: bytes) -> list[bytes]:
    """Split the output of a server into replies. Raises AssertionError if it is malformed or incomplete."""
    found: list[bytes] = []
    at = 0
    while at < len(data):
        end = data.find(b"\r\n", at)
        assert end >= 0, f"a line without CRLF: {data[at:]!r}"
        line = data[at:end]
        assert b"\r" not in line and b"\n" not in line, f"a stray CR or LF: {line!r}"
        kind, rest = line[:1], line[1:]
        assert kind in (b"+", b"-", b"$"), f"not a reply type of Faktory: {line!r}"
        end += 2
        if kind == b"-":
            assert rest.partition(b" ")[0].isupper(), f"an error begins with its code: {line!r}"
        elif kind == b"$" and rest != b"-1":
            assert rest.isdigit() and str(int(rest)).encode() == rest, f"not a length: {line!r}"
            end += int(rest) + 2
            assert data[end - 2 : end] == b"\r\n", f"not {rest.decode()} bytes and CRLF: {data[at:end]!r}"
        found.append(data[at:end])
        at = end
    return found


def body(reply: bytes) -> bytes:
    """The content of a bulk reply."""
    head, _, rest = reply.partition(b"\r\n")
    assert head[:1] == b"$" and rest.endswith(b"\r\n"), f"not a bulk reply: {reply!r}"
    return rest[:-2]
