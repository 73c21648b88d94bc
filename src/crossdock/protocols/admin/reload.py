"""The request that reloads the settings file, as SIGHUP does."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from crossdock.model.errors import BadSetting
from crossdock.protocols.admin import messages
from crossdock.protocols.admin.codec import reply
from crossdock.protocols.admin.messages import Invalid


class Reloaded(Protocol):
    @property
    def changed(self) -> Sequence[str]:
        """Names of settings that were changed."""

    @property
    def restart(self) -> Sequence[str]:
        """Names of settings that differ in the file and need a restart."""


#: Reads the settings again and applies them. Raises BadSetting, and changes nothing then.
Reloader: TypeAlias = Callable[[], Reloaded]


def reload(reloader: Reloader | None, request: messages.Reload) -> bytes:
    if reloader is None:
        raise Invalid("this server cannot reload its settings")
    try:
        done = reloader()
    except BadSetting as error:
        raise Invalid(f"nothing was changed: {error}") from error
    return reply({"reload": {"changed": list(done.changed), "restart": list(done.restart)}})
