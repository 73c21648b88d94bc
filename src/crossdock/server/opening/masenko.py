from crossdock.protocols.masenko.protocol import MasenkoDoor
from crossdock.server.room import MIB
from crossdock.settings import Settings


def door(settings: Settings, *, may_flush: bool) -> MasenkoDoor:
    return MasenkoDoor(heartbeat_s=settings.masenko.heartbeat, line_bytes=settings.masenko.line_mib * MIB)
