"""Delayed jobs and plans."""

import json
from typing import Any

import pytest

from crossdock.model.commands.core import Enqueue
from crossdock.model.job import Form, Spec
from crossdock.protocols.redis.resqu import scripts
from tests.model.bench import RULES
from tests.resqu.saying import P, base, insert, script
from tests.resqu.speaking import Direct, Refused


class TestDelayedJobs:
    def test_a_delayed_job_is_released_in_its_second_with_a_new_id(self, direct: Direct) -> None:
        at = int(direct.dispatcher.now.wall) + 60
        assert direct.say("c", "RPUSH", f"{P}delayed:{at}", base(args=[1])) == 1
        assert direct.say("c", "ZADD", f"{P}delayed_queue_schedule", str(at), str(at)) == 1
        assert direct.say("c", "RPUSH", f"{P}delayed:{at}", base(args=[2])) == 2
        assert direct.say("c", "ZADD", f"{P}delayed_queue_schedule", str(at), str(at)) == 0
        assert direct.say("c", "LRANGE", f"{P}delayed:{at}", "0", "-1") == [base(args=[1]), base(args=[2])]
        assert direct.say("c", "ZRANGE", f"{P}delayed_queue_schedule", "0", "-1") == [str(at)]
        assert direct.say("s", "ZRANGEBYSCORE", f"{P}delayed_queue_schedule", "-inf", str(at), "LIMIT", "0", "1") == []
        assert direct.say("c", "ZRANGEBYSCORE", f"{P}delayed_queue_schedule", "-inf", "+inf") == [str(at)]
        direct.dispatcher.advance(60.0)
        first, second = map(json.loads, reversed(direct.say("c", "LRANGE", f"{P}unassigned", "0", "-1")))
        assert (first["args"], second["args"]) == ([1], [2])
        assert len(first["id"]) == 32 and first["queue_time"] == at

    def test_jobs_of_other_protocols_are_not_in_the_delayed_lists(self, direct: Direct) -> None:
        at = int(direct.dispatcher.now.wall) + 60
        schedule, second = f"{P}delayed_queue_schedule", f"{P}delayed:{at}"

        def told() -> list[Any]:
            keys = sorted(each for each in (schedule, second) if direct.say("c", "EXISTS", each))
            by_pattern, (_, scanned) = direct.say("c", "KEYS", f"{P}*"), direct.say("c", "SCAN", "0")
            assert by_pattern == scanned == [each for each in keys if each == schedule], "the second is in the schedule"
            sizes = direct.say("c", "DBSIZE"), direct.say("c", "ZCARD", schedule), direct.say("c", "LLEN", second)
            return [*sizes, direct.say("c", "TYPE", schedule), direct.say("c", "ZRANGE", schedule, "0", "-1")]

        direct.dispatcher.do(Enqueue("faktory", [Spec("due", "q", "k", b"[]", Form.JSON, 0, RULES, float(at))]))
        assert told() == [0, 0, 0, "none", []]
        assert direct.say("c", "RPUSH", second, base()) == 1, "it is the first in the list"
        assert told() == [1, 1, 1, "zset", [str(at)]]
        direct.dispatcher.advance(60.0)
        assert direct.say("c", "EXISTS", schedule, second) == 0

    def test_a_delayed_job_of_the_past_is_released_at_once(self, direct: Direct) -> None:
        assert direct.say("c", "RPUSH", f"{P}delayed:5", base()) == 1
        assert direct.say("c", "LLEN", f"{P}unassigned") == 1

    def test_a_repeated_delayed_push_is_recognised_by_its_uid(self, direct: Direct) -> None:
        at = int(direct.dispatcher.now.wall) + 60
        direct.say("a", "SETNX", f"{P}unique:u:state", "queued")
        for connection in ("a", "b"):
            assert direct.say(connection, "RPUSH", f"{P}delayed:{at}", base(unique={"uid": "u"})) == 1

    @pytest.mark.parametrize("second", ["x", "1.5", "99999999999999"])
    def test_a_key_without_a_valid_second_is_refused(self, direct: Direct, second: str) -> None:
        with pytest.raises(Refused, match="does not end in a time in seconds"):
            direct.say("c", "RPUSH", f"{P}delayed:{second}", base())


class TestPlans:
    def test_a_plan_runs_repeatedly_and_shows_its_next_run(self, direct: Direct) -> None:
        at = int(direct.dispatcher.now.wall) + 10
        assert insert(direct, at) == 1
        assert insert(direct, at) is None
        assert direct.say("c", "LRANGE", f"{P}plan_schedule:{at}", "0", "-1") == ["s_p"]
        direct.dispatcher.advance(115.0)
        assert direct.say("c", "LLEN", f"{P}unassigned") == 2
        shown = json.loads(direct.say("c", "GET", f"{P}plan:s_p"))
        assert shown["nextRun"] == at + 200
        assert direct.say("c", "ZRANGE", f"{P}plan_schedule", "0", "-1") == [str(at + 200)]
        texts = [json.loads(text) for text in direct.say("c", "LRANGE", f"{P}unassigned", "0", "-1")]
        assert all(text.keys() == {"class", "sourceId", "name", "id", "queue_time"} for text in texts)

    def test_a_run_is_skipped_while_its_uid_is_held(self, direct: Direct) -> None:
        at = int(direct.dispatcher.now.wall) + 10
        insert(direct, at, "PT10S", unique={"uid": "u"})
        direct.dispatcher.advance(45.0)
        assert direct.say("c", "LLEN", f"{P}unassigned") == 1

    @pytest.mark.parametrize("interval", ["P0Y0M0DT0H0M0S", "soon", "P1X", ""])
    def test_a_wrong_interval_is_refused(self, direct: Direct, interval: str) -> None:
        with pytest.raises(Refused, match="ERR invalid job: "):
            insert(direct, 1_800_000_000, interval)

    def test_a_plan_whose_keys_and_arguments_differ_is_refused(self, direct: Direct) -> None:
        plan = base(id="s_p", nextRun=5, recurrenceInterval="PT1S")
        keys = ["plan:s_q", "plan_schedule", "plan_schedule:5", "plan_list:s"]
        with pytest.raises(Refused, match="name different plans"):
            script(direct, scripts.PLAN_INSERT, keys, plan, "5", "s_p")
        with pytest.raises(Refused, match="the payload is of plan 's_p' of 's', the keys of 's_q' of 's'"):
            script(direct, scripts.PLAN_INSERT, keys, plan, "5", "s_q")

    def test_the_scheduler_may_move_and_update_a_plan(self, direct: Direct) -> None:
        at = int(direct.dispatcher.now.wall) + 10
        insert(direct, at)
        keys = ["plan_schedule", f"plan_schedule:{at}", f"plan_schedule:{at + 7}"]
        assert script(direct, scripts.PLAN_MOVE, keys, str(at + 7), "s_p") is None
        assert json.loads(direct.say("c", "GET", f"{P}plan:s_p"))["nextRun"] == at + 7
        text = base(args=["new"], id="s_p", nextRun=at, recurrenceInterval="PT50S")
        assert direct.say("c", "SET", f"{P}plan:s_p", text) == "OK"
        direct.dispatcher.advance(17.0)
        assert json.loads(direct.say("c", "LINDEX", f"{P}unassigned", "0"))["args"] == ["new"]
        with pytest.raises(Refused, match=r"plan .* not found"):
            direct.say("c", "SET", f"{P}plan:s_other", text)
