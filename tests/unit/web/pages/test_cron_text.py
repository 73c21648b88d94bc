"""Schedules in plain language."""

import pytest

from crossdock.web.pages.cron_text import describe


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0 * * * *", "every hour"),
        ("15,45 * * * *", "every hour at minute 15 and 45"),
        ("0 */2 * * *", "every 2 hours"),
        ("30 3 * * *", "at 03:30"),
        ("30 3 * * 1-5", "at 03:30 on weekdays"),
        ("0 8,20 * * *", "at 08:00 and 20:00"),
        ("0 0 1 * *", "at 00:00 on day 1 of the month"),
        ("0 0 L * *", "at 00:00 on the last day of the month"),
        ("0 9 * * MON,7", "at 09:00 on Monday and Sunday"),
        ("0 0 1 1 *", "at 00:00 on day 1 of the month in January"),
        ("*/10 9-17 * * *", "every 10 minutes in hour 9 to 17"),
        ("P1D", "every day"),
        ("P1DT2H", "every 1 day 2 hours"),
        ("PT90S", "every 90 seconds"),
        ("nonsense", "nonsense"),
        ("P", "P"),
    ],
)
def test_a_schedule_reads_like_a_sentence(schedule: str, text: str) -> None:
    assert describe(schedule) == text


@pytest.mark.parametrize("field", ["*", "*/7", "1-5", "1,2", "L", "FRI#2", "99", "?", "5-", "*/x", "<b>"])
def test_every_field_gives_some_text(field: str) -> None:
    for place in range(5):
        fields = ["0"] * 5
        fields[place] = field
        assert describe(" ".join(fields))
