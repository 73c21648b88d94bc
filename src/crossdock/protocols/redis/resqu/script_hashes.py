"""The scripts of Resqu's client and server by the SHA-1 of their texts (protocol page, Resqu 4), and what we call them.

The texts themselves are not kept: nothing runs them.
"""

from collections.abc import Mapping
from typing import Final

DEFER_ADD: Final = "resqu/defer-add"
PLAN_INSERT: Final = "resqu/plan-insert"
PLAN_INSERT_OLD: Final = "resqu/plan-insert-old"  #: does not list plans by source
PLAN_CLEAN: Final = "resqu/plan-clean"
BATCH_INIT: Final = "resqu/batch-init"
BATCH_COMMIT: Final = "resqu/batch-commit"

UNIQUE_FINALIZE: Final = "resqu/unique-finalize"
UNIQUE_FINALIZE_OLD: Final = "resqu/unique-finalize-old"  #: says nil where the later one says 1
BATCH_ASSIGN: Final = "resqu/batch-assign"
BATCH_ASSIGN_OLD: Final = "resqu/batch-assign-old"  #: knows no backlog
BATCH_REMOVE: Final = "resqu/batch-remove"
UNIT_CLEAR: Final = "resqu/unit-clear"
PLAN_MOVE: Final = "resqu/plan-move"

#: What the client sends. BATCH_COMMIT of 1.0.0 to 1.0.2 left the batch its end, a fault no client wants back.
CLIENT: Final[Mapping[str, str]] = {
    "b41f445ce957025d83be8dbc13dfb3526aabfdc8": DEFER_ADD,
    "1277edc1645a391ac7c09501f12242426da7fda4": PLAN_INSERT,
    "8deb90a8842644440a2a27f085f063661145f5c3": PLAN_CLEAN,
    "05d3317f882a369c1e0e4fb5c8c4c9a36aa05565": BATCH_INIT,
    "989a65da06a228c7cf82f6856b13a9db90ddcbc8": BATCH_COMMIT,
    "ba6fc8fdbd0ffd8418b6d2df4d3b3fb194b55065": BATCH_COMMIT,
    "21ec9ecb02701c908e206116eb2c63ecb9954ebb": BATCH_COMMIT,  # this and the next two: development versions
    "dcb02e12e01286697785b1bbbe6c2930a5da09d2": BATCH_INIT,
    "f11a3e3e281d5b46c43717ae27f71c25e1832897": PLAN_INSERT_OLD,
}

#: What servers 4.0.0 to 4.1.4 send beside.
SERVER: Final[Mapping[str, str]] = {
    "97ab219769ea58a253d4a3ec787d62f5144ddfb3": UNIQUE_FINALIZE,
    "fcbe7c6b70b28ac7a7a4b8610cad327f2bbafe54": UNIQUE_FINALIZE_OLD,
    "91350fcf1083b494d6c1530ac514c4821794c62d": BATCH_ASSIGN,
    "901ea7e93ffa551a0735fb16d8818d5374b716a9": BATCH_ASSIGN_OLD,
    "ab50003ac4f04cf8dcc4706abb9b4ace899019a7": BATCH_REMOVE,
    "e03ede0d8e71dc27cbc070a7f7318648bb2ae8fd": UNIT_CLEAR,
    "11e1f623205ec4e7c2142ff5a9de7acd03325a42": UNIT_CLEAR,
    "23508a616ede1a60f4adbf7b3c40b75cf8e98f12": PLAN_MOVE,
}

KNOWN: Final[Mapping[str, str]] = {**CLIENT, **SERVER}
