"""The numbers of a jid, and how jids are spread over the parts."""

from crossdock.engine.index.job_table import JidIndex


def test_a_jid_with_one_number_is_found_and_removed() -> None:
    jids = JidIndex()
    jids.add("a", 1)
    assert "a" in jids
    assert (jids.all("a"), jids.newest("a"), list(jids)) == ((1,), 1, ["a"])
    jids.take("a", 1)
    assert "a" not in jids
    assert (jids.all("a"), jids.newest("a"), list(jids)) == ((), None, [])


def test_several_numbers_of_a_jid_are_listed_oldest_first() -> None:
    jids = JidIndex()
    for number in (2, 5, 3):  # 3 was pushed under another jid, and renamed
        jids.add("a", number)
    assert (jids.all("a"), jids.newest("a")) == ((2, 3, 5), 5)
    jids.take("a", 5)
    assert (jids.all("a"), jids.newest("a")) == ((2, 3), 3)
    jids.take("a", 2)
    assert (jids.all("a"), jids.newest("a")) == ((3,), 3)


def test_jids_are_spread_evenly_over_the_parts() -> None:
    jids = JidIndex()
    for number in range(64_000):
        jids.add(f"job-{number}", number)
    assert max(map(len, jids.parts)) < 1_500
    assert sorted(jids.newest(jid) or 0 for jid in jids) == list(range(64_000))
