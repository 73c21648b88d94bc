import asyncio

import pytest

from crossdock.web.auth.passwords import PASSWORD_CHARACTERS, Passwords, make_hash


def accepts(expected: str, password: str) -> bool:
    async def ask() -> bool:
        return await Passwords(expected).accepts(password)

    return asyncio.run(ask())


def test_a_hash_is_argon2id_and_differs_each_time() -> None:
    one, other = make_hash("secret"), make_hash("secret")
    assert one.startswith("$argon2id$")
    assert one != other


def test_a_password_matches_its_hash_alone() -> None:
    expected = make_hash("sécret")
    assert accepts(expected, "sécret")
    assert not accepts(expected, "secret")
    assert not accepts(expected, expected)


@pytest.mark.parametrize(
    ("password", "is_accepted"), [("plain", True), ("Plain", False), ("", False), ("plain ", False)]
)
def test_a_plain_password_is_compared_as_a_whole(password: str, is_accepted: bool) -> None:
    assert accepts("plain", password) is is_accepted


def test_a_damaged_hash_accepts_nothing() -> None:
    assert not accepts("$argon2id$v=19$broken", "x")


def test_nothing_is_accepted_without_a_password_or_beyond_its_longest() -> None:
    assert not accepts("", "")
    assert not accepts("x" * (PASSWORD_CHARACTERS + 1), "x" * (PASSWORD_CHARACTERS + 1))
    assert not Passwords("").are_required


def test_an_address_has_five_tries_a_minute() -> None:
    passwords = Passwords("x")
    assert [passwords.wait_s("10.0.0.1") == 0 for _ in range(6)] == [True] * 5 + [False]
    assert passwords.wait_s("10.0.0.2") == 0
