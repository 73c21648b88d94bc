from crossdock.protocols.faktory.protocol import FaktoryDoor
from crossdock.server.pulse import memory_mib
from crossdock.server.room import MIB
from crossdock.settings import Settings


def door(settings: Settings, *, may_flush: bool) -> FaktoryDoor:
    return FaktoryDoor(
        password=settings.faktory.password,
        one_round=settings.faktory.one_round,
        line_bytes=settings.faktory.line_mib * MIB,
        handshake_s=settings.faktory.handshake_s,
        may_flush=may_flush,
        memory_mb=memory_mib,
    )
