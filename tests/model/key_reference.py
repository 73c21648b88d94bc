"""The reference model of the key space: dicts and lists without events, indexes or sizes."""

from collections.abc import Callable
from typing import Any, Final

from crossdock.model.clock import Now
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.commands import keyspace as k
from crossdock.model.commands.core import Command

#: Kind, value (bytes, list, or dict of members), end (0: never).
Value = tuple[k.Kind, Any, float]


class KeyReference:
    def __init__(self) -> None:
        self.keys: dict[bytes, Value] = {}
        self.scripts: dict[str, str] = {}

    def do(self, command: Command[Any], now: Now) -> Any:
        self.keys = {key: value for key, value in self.keys.items() if not 0 < value[2] <= now.steady}
        return RULES[type(command)](self, command, now)

    def set_key(self, command: k.SetKey, now: Now) -> None:
        end = command.end
        if end is None:
            end = self.keys[command.key][2] if command.key in self.keys else 0.0
        self.keys[command.key] = (k.Kind.STRING, command.value, end)

    def drop_keys(self, command: k.DropKeys, now: Now) -> int:
        return sum(self.keys.pop(key, None) is not None for key in command.keys)

    def keep_key(self, command: k.KeepKey, now: Now) -> bool:
        if command.key not in self.keys:
            return False
        kind, value, _ = self.keys.pop(command.key)
        if not 0 < command.end <= now.steady:
            self.keys[command.key] = (kind, value, command.end)
        return True

    def change_list(self, command: k.ChangeList, now: Now) -> int:
        kind, value, end = self.keys.pop(command.key, (k.Kind.LIST, [], 0.0))
        value = [each for i, each in enumerate(value) if i not in command.drop]
        value[command.start : command.start + command.cut] = command.put
        if value:
            self.keys[command.key] = (kind, value, end)
        return len(value)

    def change_members(self, command: k.ChangeMembers, now: Now) -> None:
        kind, value, end = self.keys.pop(command.key, (command.kind, {}, 0.0))
        value = {member: each for member, each in value.items() if member not in command.drop} | dict(command.put)
        if value:
            self.keys[command.key] = (kind, value, end)

    def know_script(self, command: k.KnowScript, now: Now) -> None:
        self.scripts[command.sha] = command.dialect

    def forget_scripts(self, command: k.ForgetScripts, now: Now) -> None:
        self.scripts = {}

    def flush(self, command: admin.Flush, now: Now) -> None:
        self.keys = {}

    def tick(self, command: c.Tick, now: Now) -> None:
        """Does nothing, because expired keys are removed before every command."""


RULES: Final[dict[type[Command[Any]], Callable[[KeyReference, Any, Now], Any]]] = {
    k.SetKey: KeyReference.set_key,
    k.DropKeys: KeyReference.drop_keys,
    k.KeepKey: KeyReference.keep_key,
    k.ChangeList: KeyReference.change_list,
    k.ChangeMembers: KeyReference.change_members,
    k.KnowScript: KeyReference.know_script,
    k.ForgetScripts: KeyReference.forget_scripts,
    admin.Flush: KeyReference.flush,
    c.Tick: KeyReference.tick,
}
