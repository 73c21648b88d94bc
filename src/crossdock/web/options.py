"""What the server passes to the web process at its start. Imported by both, so it imports nothing of either."""

from pathlib import Path

import msgspec


class WebOptions(msgspec.Struct, frozen=True):
    """One JSON line on stdin, because every user of the machine can read command lines and this holds a secret."""

    data: Path
    address: str
    descriptor: int  #: the bound socket, inherited
    password: str = ""  #: plain, or an argon2id hash; empty: no sign-in
    token_file: str = ""
    hosts: tuple[str, ...] = ()
    tls_cert: str = ""
    tls_key: str = ""
    lake: str = ""  #: folder or URL
    segment_s: float | None = None  #: lake.segment_s; None: the server writes no lake
    tables: str = ""


def encode(options: WebOptions) -> bytes:
    return msgspec.json.encode(options, enc_hook=str) + b"\n"


def decode(line: bytes) -> WebOptions:
    return msgspec.json.decode(line, type=WebOptions, dec_hook=lambda _, text: Path(text))
