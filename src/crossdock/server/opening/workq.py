from crossdock.settings import Settings
from crossdock.wire.workq.door import WorkqDoor


def door(settings: Settings, *, may_flush: bool) -> WorkqDoor:
    return WorkqDoor(lease_ttr=settings.workq.lease_ttr)
