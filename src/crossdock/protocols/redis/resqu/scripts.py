"""Resqu's scripts, answered natively (protocol page 4). Each names its keys and what it needs of them."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import Error, Value
from crossdock.protocols.redis.resqu import batches, delayed, locks, plans, script_hashes, units
from crossdock.protocols.redis.resqu.keys import Kind, Name, read
from crossdock.protocols.redis.resqu.specs import Specs
from crossdock.protocols.redis.scripts import Call


class Asked(NamedTuple):
    context: Context
    specs: Specs
    keys: list[bytes]
    names: list[Name]
    args: list[bytes]

    def name(self, index: int = 0) -> str:
        return self.names[index].name.decode()

    def word(self, index: int) -> str:
        return self.args[index].decode()


class Script(NamedTuple):
    keys: tuple[Kind, ...]
    args: int
    act: Callable[[Asked], Value]


def _defer_add(asked: Asked) -> Value:
    _same(asked, 0, 1)
    return locks.defer_add(asked.context, asked.specs, asked.name(), asked.args)


def _finalise(asked: Asked) -> Value:
    _same(asked, 0, 1)
    return locks.finalise(asked.context, asked.name(), asked.args, nothing=1)


def _finalise_old(asked: Asked) -> Value:
    _same(asked, 0, 1)
    return locks.finalise(asked.context, asked.name(), asked.args, nothing=None)


def _plan_insert(asked: Asked) -> Value:
    at = delayed.second(asked.keys[2], asked.names[2].name)
    if asked.args[1] != b"%d" % at or asked.args[2] != asked.names[0].name:
        raise Error("ERR the plan's keys and arguments name different plans or seconds")
    source = asked.name(3) if len(asked.names) > 3 else asked.name().partition("_")[0]
    return plans.insert(asked.context, asked.specs, asked.name(), source, at, asked.args[0])


def _plan_clean(asked: Asked) -> Value:
    """A second without plans is not shown, so there is nothing to clean."""
    return None


def _plan_move(asked: Asked) -> Value:
    at = delayed.second(asked.keys[2], asked.names[2].name)
    if asked.args[0] != b"%d" % at:
        raise Error("ERR the plan's keys and arguments name different seconds")
    plans.move(asked.context, asked.word(1), at)
    return None


def _batch_init(asked: Asked) -> Value:
    return batches.init(asked.context, asked.specs, asked.name(), asked.args[0])


def _batch_commit(asked: Asked) -> Value:
    _same(asked, 1, 2)
    if asked.args[0] != asked.names[1].name:
        raise Error("ERR the batch's keys and argument name different batches")
    return batches.commit(asked.context, asked.name(1))


def _batch_assign(asked: Asked) -> Value:
    return units.assign(asked.context, asked.keys, asked.args)


def _batch_remove(asked: Asked) -> Value:
    return units.remove(asked.context, asked.keys, asked.args)


def _unit_clear(asked: Asked) -> Value:
    return units.clear(asked.context, asked.keys, asked.args)


def _same(asked: Asked, one: int, other: int) -> None:
    if asked.names[one].name != asked.names[other].name:
        raise Error(b"ERR '%b' and '%b' do not belong together" % (asked.keys[one][:128], asked.keys[other][:128]))


_UNIT: Final = (Kind.PLAIN,) * 4

SCRIPTS: Final[Mapping[str, Script]] = {
    script_hashes.DEFER_ADD: Script((Kind.STATE, Kind.DEFERRED), 2, _defer_add),
    script_hashes.PLAN_INSERT: Script((Kind.PLAN, Kind.PLAN_TIMES, Kind.PLANS_AT, Kind.PLANS_OF), 3, _plan_insert),
    script_hashes.PLAN_INSERT_OLD: Script((Kind.PLAN, Kind.PLAN_TIMES, Kind.PLANS_AT), 3, _plan_insert),
    script_hashes.PLAN_CLEAN: Script((Kind.PLAN_TIMES, Kind.PLANS_AT), 1, _plan_clean),
    script_hashes.BATCH_INIT: Script((Kind.STAGE,), 1, _batch_init),
    script_hashes.BATCH_COMMIT: Script((Kind.PLAIN, Kind.BATCH, Kind.STAGE), 1, _batch_commit),
    script_hashes.UNIQUE_FINALIZE: Script((Kind.STATE, Kind.DEFERRED), 1, _finalise),
    script_hashes.UNIQUE_FINALIZE_OLD: Script((Kind.STATE, Kind.DEFERRED), 1, _finalise_old),
    script_hashes.BATCH_ASSIGN: Script(_UNIT, 4, _batch_assign),
    script_hashes.BATCH_ASSIGN_OLD: Script(_UNIT, 3, _batch_assign),
    script_hashes.BATCH_REMOVE: Script((*_UNIT, Kind.PLAIN), 3, _batch_remove),
    script_hashes.UNIT_CLEAR: Script(_UNIT[:2], 1, _unit_clear),
    script_hashes.PLAN_MOVE: Script((Kind.PLAN_TIMES, Kind.PLANS_AT, Kind.PLANS_AT), 2, _plan_move),
}


def answer(call: Call, specs: Specs) -> Value:
    script = SCRIPTS[call.dialect]
    what = call.dialect.removeprefix("resqu/")
    if len(call.keys) != len(script.keys) or len(call.args) != script.args:
        text = f"ERR {what} takes {len(script.keys)} keys and {script.args} arguments, not "
        raise Error(f"{text}{len(call.keys)} and {len(call.args)}")
    names = [_name(what, key, kind) for key, kind in zip(call.keys, script.keys, strict=True)]
    try:
        return script.act(Asked(call.context, specs, call.keys, names, call.args))
    except UnicodeDecodeError:
        raise Error(f"ERR {what}: names must be UTF-8") from None


def _name(what: str, key: bytes, kind: Kind) -> Name:
    name = read(key)
    if name.kind is not kind:
        raise Error(b"ERR %b: '%b' is not a key of the kind it takes there" % (what.encode(), key[:128]))
    return name
