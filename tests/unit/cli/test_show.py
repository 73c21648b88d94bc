"""How operator commands parse time spans and print ages, sizes and texts of clients."""

from pathlib import Path

import pytest

from crossdock.cli.render.tables import age, clean, columns, count, cut, lasting, rate, share, size, some
from crossdock.journal.data_dir import in_use_by
from crossdock.protocols.admin.filter_language import read_span


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("45s", 45), ("10m", 600), ("1.5h", 5_400), ("7d", 604_800), ("2w", 1_209_600), ("0", 0)],
)
def test_a_valid_span_is_parsed(text: str, seconds: float) -> None:
    assert read_span(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-5", "10 m", "1y", "1e3", "٣m", "1h30m", "9" * 400])
def test_an_invalid_span_is_refused(text: str) -> None:
    assert read_span(text) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0, "0s"),
        (0.44, "0.4s"),
        (59.9, "59s"),
        (61, "1m1s"),
        (3_600, "1h"),
        (3_605, "1h"),
        (90_061, "1d1h"),
        (864_000, "10d"),
    ],
)
def test_an_age_is_printed_with_its_largest_units(seconds: float | None, text: str) -> None:
    assert age(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (2_048, "2 KiB"), (5 * 1024**2, "5 MiB"), (3 * 1024**3, "3.0 GiB")]
)
def test_a_size_is_printed_with_its_unit(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0, "0s"), (0.0003, "0.3ms"), (0.012, "12ms"), (1.239, "1.24s"), (12.39, "12.4s"), (3_700, "1h1m"),
     (-90, "-1m30s"), (-0.5, "-500ms")],
)  # fmt: skip
def test_a_duration_is_printed_with_its_unit(seconds: float | None, text: str) -> None:
    assert lasting(seconds) == text


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (rate(0), "0"),
        (rate(12_345.6), "12,346/s"),
        (rate(2.5), "2.5/s"),
        (rate(0.5), "30/min"),
        (rate(0.01), "36/h"),
        (rate(0.01, 0.02), "0.6/min"),
        (rate(0.0001), "8.64/d"),
        (share(0.123), "12.3 %"),
        (share(25.0), "2,500 %"),
        (count(999), "999"),
        (count(1_200), "1.2k"),
        (count(3e7), "30M"),
        (count(5e12), "5e+03G"),
    ],
)
def test_rates_shares_and_counts_are_short(printed: str, text: str) -> None:
    assert printed == text


def test_counts_are_printed_with_singular_or_plural() -> None:
    assert [some(count, "job") for count in (0, 1, 2_000)] == ["0 jobs", "1 job", "2,000 jobs"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain ä 日", "plain ä 日"), ("\x1b[2J", "\\x1b[2J"), ("a\nb\r", "a\\nb\\r"), ("\u202eevil", "\\u202eevil")],
)
def test_control_characters_of_clients_are_escaped(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_columns_align_numbers_right_and_texts_left() -> None:
    assert columns(("NAME", ">COUNT"), [("a", "1"), ("long\tname", "10,000")]) == (
        "NAME         COUNT\na                1\nlong\\tname  10,000"
    )
    assert columns(("NAME", "STATE"), []) == "NAME  STATE"


def test_optional_columns_are_left_out_of_a_narrow_table() -> None:
    heads, rows = ("NAME", ">IN", ">OUT", "STATE"), [("mail", "10", "2", "paused")]
    whole = "NAME  IN  OUT  STATE\nmail  10    2  paused"
    assert columns(heads, rows, None, (">IN", ">OUT")) == whole
    assert columns(heads, rows, 21, (">IN", ">OUT")) == whole
    assert columns(heads, rows, 20, (">IN", ">OUT")) == "NAME  STATE\nmail  paused"


def test_a_long_text_is_truncated() -> None:
    assert (cut("short", 5), cut("longer", 5)) == ("short", "long…")


def test_the_holder_of_a_lock_is_named(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    table = tmp_path / "locks"
    inode = lock.stat().st_ino
    table.write_text(
        f"1: POSIX  ADVISORY  WRITE 11 fd:00:{inode} 0 EOF\n"
        f"2: FLOCK  ADVISORY  WRITE 12 fd:00:{inode}7 0 EOF\n"
        "3: -> FLOCK\n"
        f"4: FLOCK  ADVISORY  WRITE 4711 fd:00:{inode} 0 EOF\n"
    )
    assert in_use_by(tmp_path, table) == "4711"
    assert in_use_by(tmp_path / "none", table) == ""
    assert in_use_by(tmp_path, tmp_path / "none") == ""
