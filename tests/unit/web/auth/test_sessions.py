from crossdock.web.auth.sessions import IDLE_S, LONGEST_S, SESSIONS, Sessions


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_an_id_has_256_bits_and_finds_its_session() -> None:
    sessions = Sessions()
    ident = sessions.open("admin")
    found = sessions.find(ident)
    assert len(ident) == 43  # 32 bytes in base64
    assert found is not None
    assert found.user == "admin"
    assert sessions.find("x" * 43) is None
    assert sessions.find("") is None


def test_a_session_ends_when_it_is_idle() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    ident = sessions.open("admin")
    clock.now += IDLE_S - 1
    assert sessions.find(ident)  # and its idle time begins again
    clock.now += IDLE_S - 1
    assert sessions.find(ident)
    clock.now += IDLE_S + 1
    assert sessions.find(ident) is None
    assert len(sessions) == 0


def test_a_session_that_is_used_ends_after_its_longest_time() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    ident = sessions.open("admin")
    for _ in range(LONGEST_S // IDLE_S):
        clock.now += IDLE_S
        assert sessions.find(ident)
    clock.now += 1
    assert sessions.find(ident) is None


def test_a_closed_session_is_not_found() -> None:
    sessions = Sessions()
    ident = sessions.open("admin")
    found = sessions.find(ident)
    assert found is not None
    sessions.close(found)
    assert sessions.find(ident) is None


def test_the_session_used_longest_ago_ends_when_there_are_too_many() -> None:
    sessions = Sessions()
    first, second = sessions.open("admin"), sessions.open("admin")
    assert sessions.find(first)  # so the second was used longest ago
    for _ in range(SESSIONS - 1):
        sessions.open("admin")
    assert len(sessions) == SESSIONS
    assert sessions.find(first)
    assert sessions.find(second) is None


def test_each_session_has_a_csrf_token_of_its_own() -> None:
    sessions = Sessions()
    one, other = (sessions.find(sessions.open("admin")) for _ in range(2))
    tokens = {sessions.csrf_token(one), sessions.csrf_token(other), sessions.csrf_token(None)}
    assert len(tokens) == 3
    assert sessions.csrf_token(one) in tokens
    assert Sessions().csrf_token(None) not in tokens
