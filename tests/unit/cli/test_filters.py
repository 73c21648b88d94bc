"""Arguments of commands as words of the filter language."""

import click
import pytest
from click.testing import CliRunner

from crossdock.cli.filters import FilterCommand, chosen, word_of


@pytest.mark.parametrize(
    ("argument", "word"),
    [
        ("state:dead", "state:dead"),
        ("error:timed out", 'error:"timed out"'),
        ("-error:timed out", '-error:"timed out"'),
        ('error:"timed out" older:2h', 'error:"timed out" older:2h'),
        ("state:dead kind:welcome", "state:dead kind:welcome"),
        ("timed out", '"timed out"'),
        ("word", "word"),
    ],
)
def test_quotes_that_a_shell_removed_are_added_again(argument: str, word: str) -> None:
    assert word_of(argument) == word


def test_flags_and_words_become_fields_of_a_request() -> None:
    flags = dict.fromkeys(("queue", "kind", "tag", "failure", "older_than")) | {"states": ("dead",)}
    assert chosen(flags | {"failure": "Timeout"}, ["queue:mail", "error:a b"]) == {
        "states": ["dead"],
        "failure": "Timeout",
        "filter": 'queue:mail error:"a b"',
    }
    assert chosen(flags | {"failure": "Time out*"}, []) == {"states": ["dead"], "filter": 'group:"Time out"*'}


def test_a_negated_word_is_no_flag() -> None:
    @click.command(cls=FilterCommand)
    @click.argument("words", nargs=-1)
    @click.option("--limit", type=int)
    def command(words: tuple[str, ...], limit: int | None, **values: object) -> None:
        click.echo(f"{' '.join(words)} {limit}")

    def run(*arguments: str) -> str:
        return CliRunner().invoke(command, list(arguments)).output

    assert run("-state:dead", "queue:a", "--limit", "3") == "queue:a -state:dead 3\n"
    assert run("-queue:a", "--", "-word") == "-queue:a -word None\n"
    assert "No such option" in run("-word")
