from crossdock.protocols.workq.protocol import WorkqDoor
from crossdock.settings import Settings


def door(settings: Settings, *, may_flush: bool) -> WorkqDoor:
    return WorkqDoor(lease_ttr=settings.workq.lease_ttr)
