"""The filter language: what a text reads as, and what is wrong with a text that cannot be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crossdock.protocols.admin.filter_language import (
    FIELDS,
    STATES,
    TERMS_AT_MOST,
    TEXT_AT_MOST,
    VALUES_AT_MOST,
    BadFilter,
    Filter,
    Term,
    Value,
    is_word,
    near_field,
    parse,
    quoted,
    read_span,
    read_time,
)

_NAMES = ("queue", "kind", "tag", "id", "group", "protocol", "worker")
_TEXTS = st.text(max_size=20)

_terms = st.one_of(
    st.builds(
        Term,
        st.sampled_from(_NAMES),
        st.lists(st.builds(Value, _TEXTS, st.booleans()), min_size=1, max_size=3).map(tuple),
        st.booleans(),
    ),
    st.builds(
        Term,
        st.just("state"),
        st.lists(st.sampled_from(STATES).map(Value), min_size=1, max_size=3).map(tuple),
        st.booleans(),
    ),
    st.builds(Term, st.sampled_from(("error", "payload", "")), st.tuples(_TEXTS.map(Value)), st.booleans()),
    st.builds(
        Term, st.sampled_from(("older", "newer")), st.tuples(st.sampled_from((Value("2h"), Value("45")))), st.booleans()
    ),
    st.builds(
        Term,
        st.sampled_from(("since", "until")),
        st.tuples(st.sampled_from((Value("2026-11-18T10:00"), Value("2026-11-18"), Value("2d")))),
        st.booleans(),
    ),
)


def unplaced(found: Filter) -> Filter:
    return Filter(tuple(replace(term, position=0) for term in found.terms))


@given(st.lists(_terms, max_size=6).map(tuple))
def test_a_rendered_filter_reads_as_the_same_filter(terms: tuple[Term, ...]) -> None:
    assert unplaced(parse(Filter(terms).render())) == Filter(terms)


@given(st.text(alphabet='ab -:",*\\\nstate', max_size=40))
def test_any_text_reads_as_a_filter_or_is_refused_with_a_position(text: str) -> None:
    found = read(text)
    if isinstance(found, str):
        assert " at position " in found
    else:
        assert unplaced(parse(found.render())) == unplaced(found)


def read(text: str) -> Filter | str:
    try:
        return parse(text)
    except BadFilter as wrong:
        return str(wrong)


def test_a_filter_is_a_list_of_words() -> None:
    found = parse('state:dead,failed  KIND:welcome error:"timed out" -queue:mail,"two words"* id:4711* older:2h word')
    assert found.terms == (
        Term("state", (Value("dead"), Value("failed")), position=1),
        Term("kind", (Value("welcome"),), position=20),
        Term("error", (Value("timed out"),), position=33),
        Term("queue", (Value("mail"), Value("two words", prefix=True)), negated=True, position=51),
        Term("id", (Value("4711", prefix=True),), position=76),
        Term("older", (Value("2h"),), position=85),
        Term("", (Value("word"),), position=94),
    )
    assert parse(" \t ") == Filter()


def test_commas_and_stars_in_free_text_stand_for_themselves() -> None:
    assert parse("error:a,b*").terms[0].values == (Value("a,b*"),)
    assert parse('queue:"a,b*"').terms[0].values == (Value("a,b*"),)
    assert parse(r'payload:"a\"b\\c"').terms[0].values == (Value('a"b\\c'),)
    assert parse("error:" + quoted('say "no"')).terms[0].values == (Value('say "no"'),)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("queue:a stat:dead", 'filter: stat:dead at position 9: unknown field "stat"; did you mean "state"?'),
        ("state:daed", 'filter: state:daed at position 1: unknown state "daed"; did you mean "dead"?'),
        ('kind:a error:"never ends', 'filter: error:"never at position 8: the quote is not closed'),
        ("queue:", "filter: queue: at position 1: it has no value"),
        ("queue:a,", "filter: queue:a, at position 1: it has no value"),
        ("-", "filter: - at position 1: it has no value"),
        (
            "older:soon",
            'filter: older:soon at position 1: "soon" is not a span of time, such as 45s, 10m, 2h or 7d',
        ),
        (
            'say"no"',
            'filter: say"no" at position 1: a quote must be around a whole value; write a quote inside a value as \\"',
        ),
    ],
)
def test_an_error_names_the_word_its_position_and_the_remedy(text: str, error: str) -> None:
    with pytest.raises(BadFilter) as wrong:
        parse(text)
    assert str(wrong.value) == error


def test_an_error_lists_the_names_if_none_is_near() -> None:
    with pytest.raises(BadFilter, match="quote it to search for the text; the fields are state, queue"):
        parse("http://host")
    with pytest.raises(BadFilter, match="the states are scheduled, blocked"):
        parse("state:xyzzy")
    with pytest.raises(BadFilter, match="is not a time, such as 2026-11-18T10:00"):
        parse("since:yesterday")


def test_length_words_and_values_are_limited() -> None:
    parse("a " * TERMS_AT_MOST)
    with pytest.raises(BadFilter, match=f"at most {TERMS_AT_MOST} words"):
        parse("a " * (TERMS_AT_MOST + 1))
    with pytest.raises(BadFilter, match=f"the limit is {TEXT_AT_MOST}"):
        parse("a" * (TEXT_AT_MOST + 1))
    with pytest.raises(BadFilter, match=f"more than {VALUES_AT_MOST} values"):
        parse("id:" + ",".join("a" * (VALUES_AT_MOST + 1)))


def test_an_error_shows_the_beginning_of_a_long_word() -> None:
    with pytest.raises(BadFilter) as wrong:
        parse("state:" + "x" * 1_000)
    assert len(str(wrong.value)) < 400


@pytest.mark.parametrize(
    ("text", "expected"),
    [("state:dead", True), ("-queue:a", True), ("stat:dead", False), ("4711", False), ("order:17", False)],
)
def test_a_word_begins_with_the_name_of_a_field(text: str, expected: bool) -> None:
    assert is_word(text) is expected


def test_a_near_field_is_found() -> None:
    assert [near_field(text) for text in ("stat:dead", "-stat:dead", "state", "urn:uuid:1")] == [
        "state",
        "state",
        "",
        "",
    ]


def test_every_field_has_a_value_that_it_takes() -> None:
    values = {"state": "dead", "older": "2h", "newer": "2h", "since": "2026-11-18", "until": "2d"}
    for field in FIELDS:
        assert parse(f"{field}:{values.get(field, 'x')}").terms[0].field == field


def test_spans_and_times() -> None:
    assert [read_span(text) for text in ("90", "45s", "1.5m", "2h", "7d", "3w", "2y", "")] == [
        90.0,
        45.0,
        90.0,
        7_200.0,
        604_800.0,
        1_814_400.0,
        None,
        None,
    ]
    assert read_time("2026-11-15T17:55:45") == read_time("2026-11-15T18:55:45+01:00") == 1_794_765_345.0
    assert read_time("2026-11-15") == 1_794_700_800.0
    assert read_time("noon") is None
