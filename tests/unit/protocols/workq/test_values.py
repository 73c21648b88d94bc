"""Workq's IDs, numbers, names and times (workq.md sections 1.2, 2 and 3)."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.model.job import Form, Job
from crossdock.model.policies import Policy
from crossdock.model.states import State
from crossdock.protocols.workq import codec
from crossdock.protocols.workq import job as workq_job

ID = "61a444a0-6128-41c0-8078-cc757d3bd2d8"


def job(jid: str, number: int = 1) -> Job:
    return Job(number, jid, "q", "k", "elsewhere", b"", Form.RAW, 0, Policy(), State.READY, 0.0, 0.0)


class TestIds:
    @given(st.uuids(), st.booleans(), st.sampled_from(["{}", "{{{}}}", "urn:uuid:{}"]), st.lists(st.booleans()))
    def test_all_forms_of_a_uuid_are_parsed_to_one(
        self, one: uuid.UUID, upper: bool, form: str, dashes: list[bool]
    ) -> None:
        parts = str(one).split("-")
        text = parts[0] + "".join(
            ("-" if keep else "") + part
            for part, keep in zip(parts[1:], [*dashes, True, True, True, True], strict=False)
        )
        written = form.format(text.upper() if upper else text)
        assert workq_job.parse(written.encode()) == str(one)

    @pytest.mark.parametrize(
        "text",
        ["", "1", ID[:-1], ID + "0", ID + "}", "{" + ID, "{" + ID + "}}", "urn:uuid:{" + ID + "}", ID.replace("6", "g"),
         "urn:uuid:" + ID[:23], ID.replace("-", "--"), "-" + ID, ID + "\n", "٣" * 32],
    )  # fmt: skip
    def test_other_texts_are_not_ids(self, text: str) -> None:
        assert workq_job.parse(text.encode()) is None

    @given(st.uuids(version=1) | st.uuids(version=3) | st.uuids(version=4) | st.uuids(version=5))
    def test_uuids_of_the_rfc_are_valid(self, one: uuid.UUID) -> None:
        assert workq_job.read(str(one).encode()) == str(one)

    @pytest.mark.parametrize("text", [str(uuid.UUID(int=0)), ID.replace("-41", "-01"), ID.replace("-80", "-c0")])
    def test_other_uuids_are_not_valid(self, text: str) -> None:
        assert workq_job.parse(text.encode()) == text
        assert workq_job.read(text.encode()) is None

    @given(st.integers(1, 2**64 - 1))
    def test_a_generated_id_can_be_parsed(self, number: int) -> None:
        shown = workq_job.shown(job("some-jid", number))
        assert workq_job.number(shown) == number
        made = uuid.UUID(shown)
        assert (made.version, made.variant, str(made)) == (4, uuid.RFC_4122, shown)
        assert workq_job.read(shown.encode()) == shown

    @pytest.mark.parametrize("jid", [ID, "6ba7b810-9dad-11d1-80b4-00c04fd430c4"])
    def test_a_valid_jid_is_shown_unchanged(self, jid: str) -> None:
        assert workq_job.shown(job(jid)) == jid
        assert workq_job.number(jid) == 0

    @pytest.mark.parametrize("jid", [ID.upper(), str(uuid.UUID(int=0)), "12345678", "", "ü" * 36, ID.replace("-", "")])
    def test_other_jids_are_shown_as_a_generated_id(self, jid: str) -> None:
        assert workq_job.shown(job(jid, 7)) == "c205d0c0-0000-4000-8000-000000000007"


class TestNumbers:
    @pytest.mark.parametrize(("text", "number"), [(b"0", 0), (b"007", 7), (b"18446744073709551615", 2**64 - 1),
                                                  (b"0" * 10_000 + b"12", 12)])  # fmt: skip
    def test_unsigned_numbers_are_parsed(self, text: bytes, number: int) -> None:
        assert codec.unsigned(text) == codec.signed(text) == number

    @pytest.mark.parametrize("text", [b"", b"-", b"+", b"x", b"1_0", b"1.0", b" 1", b"0x1", b"18446744073709551616",
                                      b"9" * 1_000_000, "٣".encode(), b"--1", b"+-1", b"1e3"])  # fmt: skip
    def test_other_texts_are_not_numbers(self, text: bytes) -> None:
        assert codec.unsigned(text) is None
        assert codec.signed(text) is None

    @pytest.mark.parametrize(("text", "number"), [(b"-4", -4), (b"+4", 4), (b"-0", 0), (b"-007", -7)])
    def test_signed_numbers_are_not_unsigned(self, text: bytes, number: int) -> None:
        assert codec.signed(text) == number
        assert codec.unsigned(text) is None

    def test_a_number_may_have_a_limit(self) -> None:
        assert (codec.unsigned(b"100", 100), codec.unsigned(b"101", 100)) == (100, None)


class TestNames:
    @pytest.mark.parametrize("name", [b"a", b"A-z_0.9", b"-4", b"n" * 255, b"..", b"_"])
    def test_valid_names_are_accepted(self, name: bytes) -> None:
        assert codec.name(name) == name.decode()

    @pytest.mark.parametrize("name", [b"", b"n" * 256, b"a b", b"a/b", b"\xc3\xbc", b"\0", b"a\n", b"\xff", b"a=b"])
    def test_invalid_names_are_refused(self, name: bytes) -> None:
        assert codec.name(name) is None


class TestTimes:
    @given(st.datetimes())
    def test_a_parsed_time_is_formatted_the_same(self, at: object) -> None:
        text = f"{at:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + "Z"
        parsed = codec.parse(text.encode())
        assert parsed is not None
        assert codec.stamp(parsed) == text.encode()

    def test_a_fraction_is_parsed_and_not_shown(self) -> None:
        whole = codec.parse(b"2026-11-15T17:55:45Z")
        assert whole is not None
        assert codec.parse(b"2026-11-15T17:55:45.25Z") == whole + 0.25
        assert codec.parse(b"2026-11-15T17:55:45." + b"9" * 10_000 + b"Z") == pytest.approx(whole + 1)
        assert codec.stamp(whole + 0.9) == b"2026-11-15T17:55:45Z"

    @pytest.mark.parametrize(
        "text",
        [b"", b"now", b"2026-11-15", b"2026-11-15 17:55:45Z", b"2026-11-15T17:55:45", b"2026-11-15T17:55:45+00:00",
         b"2026-11-15t17:55:45z", b"2026-11-31T17:55:45Z", b"2026-02-29T00:00:00Z", b"0000-01-01T00:00:00Z",
         b"2026-11-15T24:00:00Z", b"2026-11-15T17:55:60Z", b"2026-11-15T17:55:45.Z", b"26-11-15T17:55:45Z",
         b"2026-11-15T17:55:45Z "],
    )  # fmt: skip
    def test_other_texts_are_not_times(self, text: bytes) -> None:
        assert codec.parse(text) is None

    def test_times_beyond_the_calendar_are_shown_as_its_ends(self) -> None:
        assert codec.stamp(1e18) == b"9999-12-31T23:59:59Z"
        assert codec.stamp(-1e18) == b"0001-01-01T00:00:00Z"
