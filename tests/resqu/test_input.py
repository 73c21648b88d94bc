"""Scripts are recognised by their texts. Errors name what is wrong, and wrong input changes nothing."""

import pytest

from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.protocols.redis.resqu import keys as resqu_keys
from crossdock.protocols.redis.resqu import locks, plans, queue_lists, scripts
from crossdock.protocols.redis.resqu.service import Resqu
from crossdock.protocols.redis.scripts import sha1
from tests.resqu.saying import BATCH, SHA, P, base, commit, insert, job, push
from tests.resqu.speaking import Direct, Refused


class TestScripts:
    TEXT = b"return 'a text of the test'\n"

    @pytest.fixture
    def direct(self) -> Direct:
        resqu = Resqu(known={sha1(self.TEXT): scripts.BATCH_INIT})
        return Direct(protocol=RedisProtocol(libraries=(resqu.library,), views=resqu.views))

    @pytest.mark.parametrize("text", [TEXT, TEXT.replace(b"\n", b"\r\n")])
    def test_eval_recognises_a_script_by_its_hash(self, direct: Direct, text: bytes) -> None:
        key = f"{P}uncommitted:{BATCH}"
        assert direct.say("c", "EVAL", text.decode(), "1", key, job()) == 1
        assert direct.say("c", "eval", text.decode(), "1", key, job("other")) is None
        assert direct.say("c", "LLEN", key) == 1

    def test_evalsha_needs_no_load_and_other_scripts_are_unknown(self, direct: Direct) -> None:
        sha = sha1(self.TEXT)
        assert direct.say("c", "SCRIPT", "EXISTS", sha, SHA[scripts.BATCH_INIT]) == [1, 0]
        assert direct.say("c", "EVALSHA", sha, "1", f"{P}uncommitted:{BATCH}", job()) == 1
        with pytest.raises(Refused, match="NOSCRIPT"):
            direct.say("c", "EVALSHA", SHA[scripts.BATCH_INIT], "1", f"{P}uncommitted:{BATCH}", job())
        other = "return 1"
        with pytest.raises(Refused, match=f"unknown script {sha1(other.encode())}"):
            direct.say("c", "EVAL", other, "0")

    def test_wrong_keys_and_counts_are_named(self, direct: Direct) -> None:
        sha = sha1(self.TEXT)
        with pytest.raises(Refused, match="batch-init takes 1 keys and 1 arguments, not 2 and 0"):
            direct.say("c", "EVALSHA", sha, "2", f"{P}uncommitted:x", "y")
        for key in (f"{P}unassigned", "uncommitted:x", f"{P}nothing"):
            with pytest.raises(Refused, match=f"batch-init: '{key}' is not a key of the expected kind"):
                direct.say("c", "EVALSHA", sha, "1", key, job())


class TestWrongInput:
    @pytest.mark.parametrize("words", [("GET",), ("LPUSH", "x"), ("DEL",), ("HGETALL",), ("TTL",)])
    def test_unknown_keys_under_the_prefix_are_refused(self, direct: Direct, words: tuple[str, ...]) -> None:
        with pytest.raises(Refused, match="ERR unknown key 'resqu-v4:nothing': Resqu V4 has no such key"):
            direct.say("c", words[0], f"{P}nothing", *words[1:])

    @pytest.mark.parametrize("prefix", ["resqu-v5", "resque-v3"])
    def test_keys_of_other_versions_are_refused(self, direct: Direct, prefix: str) -> None:
        for words in (("LPUSH", f"{prefix}:unassigned", "x"), ("GET", f"{prefix}:x"), ("EXISTS", f"{prefix}:x")):
            with pytest.raises(Refused, match=f"ERR '{prefix}' is not supported"):
                direct.say("c", *words)

    @pytest.mark.parametrize(
        "words",
        [
            ("GET", "unassigned"),
            ("LLEN", "unique:u:state"),
            ("SMEMBERS", "plan:s_p"),
            ("HGET", "unassigned", "x"),
        ],
    )
    def test_commands_for_another_type_are_refused(self, direct: Direct, words: tuple[str, ...]) -> None:
        push(direct, "j1")
        direct.say("c", "SETNX", f"{P}unique:u:state", "queued")
        insert(direct, 1_800_000_000)
        with pytest.raises(Refused, match="WRONGTYPE"):
            direct.say("c", words[0], P + words[1], *words[2:])

    def test_the_error_of_a_script_names_the_key_of_another_type(self, direct: Direct) -> None:
        direct.say("c", "SET", f"{P}committed", "x")
        with pytest.raises(Refused, match=f"WRONGTYPE.*: delete '{P}committed'"):
            commit(direct, BATCH, 2)
        direct.say("c", "DEL", f"{P}committed")
        keys = ("3", f"{P}committed", f"{P}committed:{BATCH}", f"{P}uncommitted:{BATCH}")
        assert direct.say("c", "EVALSHA", SHA[scripts.BATCH_COMMIT], *keys, BATCH) == 1

    @pytest.mark.parametrize(
        "words",
        [
            ("RPUSH", "unassigned", "x"),
            ("LPOP", "unassigned"),
            ("DEL", "unassigned"),
            ("EXPIRE", "unassigned", "5"),
            ("LPUSH", "static:queue:p", "x"),
            ("SADD", "plan_list:s", "x"),
            ("ZADD", "plan_schedule", "1", "1"),
            ("SET", "job:j:status", "x"),
            ("LPUSH", "worker:n~p~s~1", "x"),
        ],
    )
    def test_other_writes_to_job_keys_are_refused(self, direct: Direct, words: tuple[str, ...]) -> None:
        with pytest.raises(Refused, match=f"ERR {words[0]} is not supported on 'resqu-v4:{words[1]}'"):
            direct.say("c", words[0], P + words[1], *words[2:])

    def test_names_that_are_not_utf_8_are_refused(self, direct: Direct) -> None:
        peer = direct.peer("c")
        for verb, rest in ((b"GET", b""), (b"SETNX", b"$6\r\nqueued\r\n")):
            key = b"resqu-v4:unique:\xff:state"
            peer.send(b"*%d\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n%b" % (2 + bool(rest), len(verb), verb, len(key), key, rest))
            assert peer.take().startswith(b"-ERR names must be UTF-8")

    def test_empty_and_invalid_payloads_change_nothing(self, direct: Direct) -> None:
        for text in ("", "not json", "{}", '{"class":"C"}'):
            for words in (
                ("LPUSH", f"{P}unassigned", text),
                ("RPUSH", f"{P}delayed:1900000000", text),
                ("LPUSHX", f"{P}uncommitted:{BATCH}", text),
                ("EVALSHA", SHA[scripts.BATCH_INIT], "1", f"{P}uncommitted:{BATCH}", text),
            ):
                with pytest.raises(Refused, match="ERR invalid job: "):
                    direct.say("c", *words)
        assert not direct.dispatcher.state.jobs


def test_commands_may_mix_plain_keys_with_those_of_resqu(direct: Direct) -> None:
    direct.say("c", "SET", "123456789unassigned", "plain")
    push(direct, "j1")
    assert direct.say("c", "EXISTS", "123456789unassigned", f"{P}unassigned", f"{P}unique:u:state") == 2
    assert direct.say("c", "DEL", "123456789unassigned", f"{P}unique:u:state") == 1
    with pytest.raises(Refused, match="elements cannot be moved"):
        direct.say("c", "RPOPLPUSH", "123456789unassigned", f"{P}worker:n~p~s~1")


class TestLimits:
    def test_a_full_server_refuses_jobs_plans_and_batches(self, direct: Direct) -> None:
        direct.dispatcher.full = "the disk is full"
        for words in (
            ("LPUSH", f"{P}unassigned", job()),
            ("RPUSH", f"{P}delayed:1900000000", base()),
            ("LPUSHX", f"{P}uncommitted:{BATCH}", job()),
            ("EVALSHA", SHA[scripts.BATCH_INIT], "1", f"{P}uncommitted:{BATCH}", job()),
            ("SADD", f"{P}process:n:pool:p", "n~p~s~1"),
        ):
            with pytest.raises(Refused, match="OOM the disk is full"):
                direct.say("c", *words)

    @pytest.mark.parametrize("words", [("LPUSH", "unassigned"), ("RPUSH", "delayed:1"), ("LPUSHX", "uncommitted:b")])
    def test_the_jobs_of_one_command_are_limited(
        self, direct: Direct, monkeypatch: pytest.MonkeyPatch, words: tuple[str, str]
    ) -> None:
        monkeypatch.setattr(queue_lists, "PUSHED_AT_MOST", 2)
        command, key = words
        text = [base() if command == "RPUSH" else job(ident) for ident in "abc"]
        with pytest.raises(Refused, match="ERR 3 jobs in one command; push at most 2 at a time"):
            direct.say("c", command, P + key, *text)
        assert not direct.dispatcher.state.jobs
        assert direct.say("c", command, P + key, *text[:2]) == (0 if command == "LPUSHX" else 2)

    def test_reserved_unique_ids_without_a_job_are_limited(
        self, direct: Direct, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(locks, "RESERVED_AT_MOST", 2)
        for uid in "ab":
            assert direct.say("x", "SETNX", f"{P}unique:{uid}:state", "queued") == 1
        with pytest.raises(Refused, match="OOM 2 unique ids are reserved"):
            direct.say("y", "SETNX", f"{P}unique:c:state", "queued")
        direct.peers.pop("x").close()
        assert direct.say("y", "SETNX", f"{P}unique:c:state", "queued") == 1

    def test_plans_are_limited_in_number_and_size(self, direct: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(Refused, match="a plan may have at most 65536 bytes"):
            insert(direct, 1_900_000_000, args=["x" * 65_536])
        monkeypatch.setattr(plans, "PLANS_AT_MOST", 0)
        with pytest.raises(Refused, match="there are 0 plans, which is the limit"):
            insert(direct, 1_900_000_000)

    def test_a_list_that_is_too_long_shows_only_its_length(
        self, direct: Direct, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(resqu_keys, "AT_MOST", 2)
        push(direct, "j1", "j2", "j3")
        assert direct.say("c", "LLEN", f"{P}unassigned") == 3
        with pytest.raises(Refused, match="has more than 2 records"):
            direct.say("c", "LRANGE", f"{P}unassigned", "0", "1")
