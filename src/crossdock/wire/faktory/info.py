"""INFO (page section 7): four top-level keys, map keys sorted, structs in upstream's order."""

from typing import TYPE_CHECKING

import msgspec

from crossdock.model.states import State
from crossdock.wire.desk import Desk
from crossdock.wire.faktory.times import stamp

if TYPE_CHECKING:
    from crossdock.wire.faktory.door import FaktoryDoor

#: The release whose behaviour this door has; clients parse it as semver.
VERSION = "1.10.0"


def info(door: "FaktoryDoor", desk: Desk) -> bytes:
    memory, now, ticked = desk.memory, desk.now, desk.ticked
    sizes = {state: len(shelf) for state, shelf in memory.shelves.items()}
    queues = {name: queue.waiting for name, queue in sorted(memory.queues.items()) if queue.listed}
    time = stamp(now.wall)

    def task(enqueued: int, size: int) -> dict[str, object]:
        return {"cycles": ticked.passes, "enqueued": enqueued, "size": size, "wall_time_sec": ticked.seconds}

    return msgspec.json.encode(
        {
            "now": time,
            "server_utc_time": f"{time[11:19]} UTC",
            "faktory": {
                "queues": queues,
                "sets": {
                    "dead": sizes[State.DEAD],
                    "retries": sizes[State.RETRYING],
                    "scheduled": sizes[State.SCHEDULED],
                    "working": sizes[State.LEASED],
                },
                "tasks": {
                    "Busy": {"reaped": ticked.lapsed, "size": sizes[State.LEASED]},
                    "Dead": task(ticked.purged, sizes[State.DEAD]),
                    "Retries": task(ticked.retried, sizes[State.RETRYING]),
                    "Scheduled": task(ticked.scheduled, sizes[State.SCHEDULED]),
                    "Workers": {"reaped": door.workers.reaped, "size": len(door.workers.by_wid)},
                },
                "total_failures": memory.counters.failures,
                "total_processed": memory.counters.processed,
                "total_enqueued": sum(queues.values()),
                "total_queues": len(queues),
            },
            "server": {
                "description": "Crossdock",
                "faktory_version": VERSION,
                "uptime": int(now.steady - (now.steady if door.started is None else door.started)),
                "connections": door.connections,
                "command_count": door.commands,
                "used_memory_mb": door.memory_mb(),
            },
        }
    )
