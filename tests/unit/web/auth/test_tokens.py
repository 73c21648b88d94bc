import logging
from pathlib import Path

import pytest

from crossdock.web.auth.tokens import Tokens, read

TOKEN = "0123456789abcdef"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_token_has_the_name_of_its_line(tmp_path: Path) -> None:
    file = written(tmp_path / "tokens", f"# programs\n\nops {TOKEN}\nci  {TOKEN}-2 \n")
    tokens = Tokens(str(file))
    assert tokens.name_of(TOKEN) == "ops"
    assert tokens.name_of(f"{TOKEN}-2") == "ci"
    assert tokens.name_of("ops") is None
    assert tokens.name_of("") is None


def test_without_a_file_no_token_is_known() -> None:
    assert Tokens("").name_of(TOKEN) is None


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    clock = Clock()
    file = written(tmp_path / "tokens", f"ops {TOKEN}\n")
    tokens = Tokens(str(file), clock)
    assert tokens.name_of(TOKEN) == "ops"
    written(file, f"ops {TOKEN}-new\n")
    clock.now += 1.1
    assert tokens.name_of(TOKEN) is None
    assert tokens.name_of(f"{TOKEN}-new") == "ops"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int, caplog: pytest.LogCaptureFixture) -> None:
    file = written(tmp_path / "tokens", f"ops {TOKEN}\n", mode)
    with caplog.at_level(logging.ERROR):
        assert Tokens(str(file)).name_of(TOKEN) is None
    assert "chmod 600" in caplog.text
    assert TOKEN not in caplog.text


@pytest.mark.parametrize("line", ["ops", f"ops {TOKEN} more", "ops short", f"{'n' * 256} {TOKEN}"])
def test_a_line_that_is_not_a_name_and_a_token_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ValueError, match="line 2 is not NAME TOKEN"):
        read(written(tmp_path / "tokens", f"ok {TOKEN}\n{line}\n"))


def test_a_file_that_was_removed_ends_its_tokens(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    file = written(tmp_path / "tokens", f"ops {TOKEN}\n")
    tokens = Tokens(str(file), clock)
    assert tokens.name_of(TOKEN) == "ops"
    file.unlink()
    clock.now += 1.1
    assert tokens.name_of(TOKEN) is None
    assert "no token is accepted" in caplog.text
