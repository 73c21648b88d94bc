"""Resqu's scripts, known by the SHA-1 of their texts and implemented natively (resqu.md section 4)."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import Error, Value
from crossdock.protocols.redis.resqu import batches, locks, plans, queue_lists, units
from crossdock.protocols.redis.resqu.keys import KeyKind, KeyName, read_key
from crossdock.protocols.redis.resqu.specs import Specs
from crossdock.protocols.redis.scripts import ScriptCall

DEFER_ADD: Final = "resqu/defer-add"
PLAN_INSERT: Final = "resqu/plan-insert"
PLAN_INSERT_OLD: Final = "resqu/plan-insert-old"  #: does not list plans by source
PLAN_CLEAN: Final = "resqu/plan-clean"
BATCH_INIT: Final = "resqu/batch-init"
BATCH_COMMIT: Final = "resqu/batch-commit"

UNIQUE_FINALIZE: Final = "resqu/unique-finalize"
UNIQUE_FINALIZE_OLD: Final = "resqu/unique-finalize-old"  #: returns nil instead of 1
BATCH_ASSIGN: Final = "resqu/batch-assign"
BATCH_ASSIGN_OLD: Final = "resqu/batch-assign-old"  #: has no backlog
BATCH_REMOVE: Final = "resqu/batch-remove"
UNIT_CLEAR: Final = "resqu/unit-clear"
PLAN_MOVE: Final = "resqu/plan-move"

#: Scripts of the client. BATCH_COMMIT of 1.0.0 to 1.0.2 kept the expiry of the batch, a defect that is not copied.
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

#: Additional scripts of the servers 4.0.0 to 4.1.4.
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


class ResquCall(NamedTuple):
    context: Context
    specs: Specs
    keys: list[bytes]
    names: list[KeyName]
    args: list[bytes]

    def name(self, index: int = 0) -> str:
        return self.names[index].name.decode()

    def word(self, index: int) -> str:
        return self.args[index].decode()


class ResquScript(NamedTuple):
    keys: tuple[KeyKind, ...]
    args: int
    act: Callable[[ResquCall], Value]


def _defer_add(call: ResquCall) -> Value:
    _same(call, 0, 1)
    return locks.defer_add(call.context, call.specs, call.name(), call.args)


def _finalise(call: ResquCall) -> Value:
    _same(call, 0, 1)
    return locks.finalise(call.context, call.name(), call.args, nothing=1)


def _finalise_old(call: ResquCall) -> Value:
    _same(call, 0, 1)
    return locks.finalise(call.context, call.name(), call.args, nothing=None)


def _plan_insert(call: ResquCall) -> Value:
    at = queue_lists.second(call.keys[2], call.names[2].name)
    if call.args[1] != b"%d" % at or call.args[2] != call.names[0].name:
        raise Error("ERR the plan's keys and arguments name different plans or seconds")
    source = call.name(3) if len(call.names) > 3 else call.name().partition("_")[0]
    return plans.insert(call.context, call.specs, call.name(), source, at, call.args[0])


def _plan_clean(call: ResquCall) -> Value:
    """Nothing to do: a second without plans is not shown."""
    return None


def _plan_move(call: ResquCall) -> Value:
    at = queue_lists.second(call.keys[2], call.names[2].name)
    if call.args[0] != b"%d" % at:
        raise Error("ERR the plan's keys and arguments name different seconds")
    plans.move(call.context, call.word(1), at)
    return None


def _batch_init(call: ResquCall) -> Value:
    return batches.init(call.context, call.specs, call.name(), call.args[0])


def _batch_commit(call: ResquCall) -> Value:
    _same(call, 1, 2)
    if call.args[0] != call.names[1].name:
        raise Error("ERR the batch's keys and argument name different batches")
    return batches.commit(call.context, call.name(1))


def _batch_assign(call: ResquCall) -> Value:
    return units.assign(call.context, call.keys, call.args)


def _batch_remove(call: ResquCall) -> Value:
    return units.remove(call.context, call.keys, call.args)


def _unit_clear(call: ResquCall) -> Value:
    return units.clear(call.context, call.keys, call.args)


def _same(call: ResquCall, one: int, other: int) -> None:
    if call.names[one].name != call.names[other].name:
        raise Error(b"ERR '%b' and '%b' have different names" % (call.keys[one][:128], call.keys[other][:128]))


_UNIT: Final = (KeyKind.PLAIN,) * 4

SCRIPTS: Final[Mapping[str, ResquScript]] = {
    DEFER_ADD: ResquScript((KeyKind.STATE, KeyKind.DEFERRED), 2, _defer_add),
    PLAN_INSERT: ResquScript((KeyKind.PLAN, KeyKind.PLAN_TIMES, KeyKind.PLANS_AT, KeyKind.PLANS_OF), 3, _plan_insert),
    PLAN_INSERT_OLD: ResquScript((KeyKind.PLAN, KeyKind.PLAN_TIMES, KeyKind.PLANS_AT), 3, _plan_insert),
    PLAN_CLEAN: ResquScript((KeyKind.PLAN_TIMES, KeyKind.PLANS_AT), 1, _plan_clean),
    BATCH_INIT: ResquScript((KeyKind.UNCOMMITTED_BATCH,), 1, _batch_init),
    BATCH_COMMIT: ResquScript((KeyKind.PLAIN, KeyKind.COMMITTED_BATCH, KeyKind.UNCOMMITTED_BATCH), 1, _batch_commit),
    UNIQUE_FINALIZE: ResquScript((KeyKind.STATE, KeyKind.DEFERRED), 1, _finalise),
    UNIQUE_FINALIZE_OLD: ResquScript((KeyKind.STATE, KeyKind.DEFERRED), 1, _finalise_old),
    BATCH_ASSIGN: ResquScript(_UNIT, 4, _batch_assign),
    BATCH_ASSIGN_OLD: ResquScript(_UNIT, 3, _batch_assign),
    BATCH_REMOVE: ResquScript((*_UNIT, KeyKind.PLAIN), 3, _batch_remove),
    UNIT_CLEAR: ResquScript(_UNIT[:2], 1, _unit_clear),
    PLAN_MOVE: ResquScript((KeyKind.PLAN_TIMES, KeyKind.PLANS_AT, KeyKind.PLANS_AT), 2, _plan_move),
}


def answer(call: ScriptCall, specs: Specs) -> Value:
    script = SCRIPTS[call.dialect]
    what = call.dialect.removeprefix("resqu/")
    if len(call.keys) != len(script.keys) or len(call.args) != script.args:
        text = f"ERR {what} takes {len(script.keys)} keys and {script.args} arguments, not "
        raise Error(f"{text}{len(call.keys)} and {len(call.args)}")
    names = [_name(what, key, kind) for key, kind in zip(call.keys, script.keys, strict=True)]
    try:
        return script.act(ResquCall(call.context, specs, call.keys, names, call.args))
    except UnicodeDecodeError:
        raise Error(f"ERR {what}: names must be UTF-8") from None


def _name(what: str, key: bytes, kind: KeyKind) -> KeyName:
    name = read_key(key)
    if name.kind is not kind:
        raise Error(b"ERR %b: '%b' is not a key of the expected kind" % (what.encode(), key[:128]))
    return name
