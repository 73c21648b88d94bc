import csv
import io

import pytest

from crossdock.web.api.exports import cell, csv_line, csv_lines, json_lines
from crossdock.web.api.models import JobRow


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_a_cell_that_could_be_a_formula_is_escaped(text: str) -> None:
    assert cell(text) == "'" + text


@pytest.mark.parametrize("value", ["mail", "a=b", "", 5, -5, 1.5, None])
def test_other_cells_are_left_alone(value: object) -> None:
    assert cell(value) == value


def test_a_list_is_one_cell_and_is_escaped_as_one() -> None:
    assert cell(["=vip", "b"]) == "'=vip, b"


def test_lines_can_be_read_back_whatever_the_values_are() -> None:
    row = dict.fromkeys(JobRow.__struct_fields__) | {
        "kind": 'a,"b"\nc',
        "queue": "é\0",
        "payload": "\ud800",
        "number": 7,
    }
    text = csv_lines([row]).decode("utf-8", "surrogatepass")
    [found] = csv.DictReader(io.StringIO(text, newline=""), JobRow.__struct_fields__)
    assert (found["kind"], found["queue"], found["payload"], found["number"]) == ('a,"b"\nc', "é", "\ud800", "7")


def test_json_lines_have_one_row_each() -> None:
    assert json_lines([{"kind": "=a\n"}, {"kind": "b"}]) == b'{"kind":"=a\\n"}\n{"kind":"b"}\n'


def test_a_line_ends_with_a_line_break() -> None:
    assert csv_line(["a", 1]) == b"a,1\r\n"
