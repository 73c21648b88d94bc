"""Where a job stands among the ready ones (MODEL section 5)."""

from crossdock.model.job import BAND_NORMAL, Number, Place
from crossdock.model.rules import Rules


def due_place(priority: float, rules: Rules, due: float, came: float, number: Number) -> Place:
    """Of a job that is ready because its time has come, or that never had to wait (`due` 0).

    In a band of its own it stands by the time it was due, so that being pushed or found late costs it no place.
    """
    if due and rules.due_band != BAND_NORMAL:
        return -priority, rules.due_band, due, number
    return -priority, BAND_NORMAL, came, number
