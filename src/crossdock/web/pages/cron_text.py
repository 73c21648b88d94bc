"""Cron fields and intervals in plain language: `*/5 * * * *` is "every 5 minutes"."""

import re
from typing import Final

_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS: Final = (
    "",
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAY_NAMES: Final = {name[:3].upper(): index for index, name in enumerate(_DAYS)}
_MONTH_NAMES: Final = {name[:3].upper(): index for index, name in enumerate(_MONTHS) if name}

_INTERVAL: Final = re.compile(r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_UNITS: Final = ("year", "month", "week", "day", "hour", "minute", "second")


def describe(schedule: str) -> str:
    """In plain language. A schedule that has no simple sentence is described field by field."""
    fields = schedule.split()
    if len(fields) != 5:
        return _interval(schedule)
    minute, hour, day, month, weekday = fields
    when = _time(minute, hour)
    days = _days(day, month, weekday)
    return f"{when} {days}".strip() if days else when


def _interval(text: str) -> str:
    found = _INTERVAL.fullmatch(text)
    if found is None or not any(found.groups()):
        return text
    parts = [_some(int(number), unit) for number, unit in zip(found.groups(), _UNITS, strict=True) if number]
    return f"every {' '.join(parts)}".replace("every 1 ", "every ") if len(parts) == 1 else f"every {' '.join(parts)}"


def _some(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"


def _time(minute: str, hour: str) -> str:
    if minute == "*" and hour == "*":
        return "every minute"
    if hour == "*" and (step := _step(minute)):
        return f"every {_some(step, 'minute')}" if step > 1 else "every minute"
    if hour == "*" and minute == "0":
        return "every hour"
    if hour == "*":
        return f"every hour at minute {_list(minute)}"
    if minute.isdigit() and (step := _step(hour)):
        at = "" if minute == "0" else f" at minute {int(minute)}"
        return f"every {_some(step, 'hour')}{at}" if step > 1 else f"every hour{at}"
    hours = hour.split(",")
    if minute.isdigit() and all(each.isdigit() for each in hours):
        return "at " + _and([f"{int(each):02}:{int(minute):02}" for each in hours])
    if minute == "*":
        return f"every minute of hour {_list(hour)}"
    first = f"every {_some(step, 'minute')}" if (step := _step(minute)) else f"at minute {_list(minute)}"
    return f"{first} in hour {_list(hour)}"


def _days(day: str, month: str, weekday: str) -> str:
    parts = []
    if weekday not in ("*", "?"):
        names = _names(weekday, _DAY_NAMES, _DAYS, 7)
        parts.append("on weekdays" if names == "Monday to Friday" else f"on {names}")
    if day not in ("*", "?"):
        text = "the last day" if day.upper() == "L" else f"day {_list(day)}"
        text = f"every {_some(step, 'day')}" if (step := _step(day)) else f"on {text} of the month"
        parts.append(f"and {text}" if parts else text)
    if month != "*":
        parts.append(f"in {_names(month, _MONTH_NAMES, _MONTHS, 0)}")
    return " ".join(parts)


def _step(field: str) -> int:
    return int(field[2:]) if field.startswith("*/") and field[2:].isdigit() else 0


def _list(field: str) -> str:
    return _and([_range(each) for each in field.split(",")])


def _range(text: str) -> str:
    text, _, step = text.partition("/")
    first, dash, last = text.partition("-")
    shown = f"{first} to {last}" if dash else ("any" if text == "*" else text)
    return f"{shown} in steps of {step}" if step else shown


def _names(field: str, numbers: dict[str, int], names: tuple[str, ...], wrap: int) -> str:
    def name(text: str) -> str:
        number = int(text) if text.isdigit() else numbers.get(text.upper(), -1)
        number = number % wrap if wrap else number
        return names[number] if 0 <= number < len(names) and names[number] else text

    shown = []
    for each in field.split(","):
        first, dash, last = each.partition("-")
        shown.append(f"{name(first)} to {name(last)}" if dash else name(each))
    return _and(shown)


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
