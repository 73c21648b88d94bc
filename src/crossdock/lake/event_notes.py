"""What an event of a job's history says besides its name. This module needs neither pyarrow nor deltalake."""

from typing import Any


def note(event: dict[str, Any]) -> str:
    parts = []
    if event.get("to_queue"):
        parts.append(f"to queue {event['to_queue']}")
    elif event["event"] == "pushed":
        parts.append(f"in queue {event.get('queue')}")
    if event.get("why"):
        parts.append(str(event["why"]))
    if event.get("worker"):
        parts.append(f"by {event['worker']}")
    if event.get("via"):
        parts.append(f"through {event['via']}")
    if event.get("error_message") or event.get("error_group"):
        parts.append(f"{event.get('error_group') or 'error'}: {event.get('error_message') or ''}")
    return ", ".join(parts)
