"""The password hash of Faktory's handshake, which server and client compute (faktory.md section 2.4)."""

import hashlib


def digest(password: bytes, salt: str, iterations: int) -> str:
    value = hashlib.sha256(password + salt.encode()).digest()
    for _ in range(iterations - 1):
        value = hashlib.sha256(value).digest()
    return value.hex()
