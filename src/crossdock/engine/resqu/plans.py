"""Plans: recurrences that clients make (protocol page 8). Their runs are `recur`'s affair."""


def record_name(plan: str) -> str:
    """Under which it stands among the recurrences: no name of a configured one begins like it."""
    return "\0plan:" + plan
