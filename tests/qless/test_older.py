"""The older dialects: the script of 2013 and the per-script form, which the seed describes.

Their recordings show faults that are not copied: a dependency that outlives its release, tags that a refused put took
away, locks left behind by a completion that named another queue, `unfail` of nothing. So the long ones are held to
the number of lines that agree: it may rise, and never fall.
"""

from typing import Final

import pytest

from crossdock.wire.redis.qless.dialect import UNIFIED_2013
from tests.model import invariants
from tests.qless.replay import Line, QlessDesk, same, scenarios
from tests.qless.test_replay import replayed, told
from tests.support.picture import picture

#: Where the seed, or the protocol page's advice, is another than what was recorded.
OTHERWISE: Final = {
    ("01 put/get/pop/peek", "queues"): "a completion under another queue's name leaves no lock behind",
    ("02 fail/failed/unfail/retry", "unfail"): "nothing to unfail is no error",
    ("05 tag/track/priority/config/jobs/recur", "tag"): "a tag is there once",
    ("05 tag/track/priority/config/jobs/recur", "track"): "the seed lets track tag the job",
    ("05 tag/track/priority/config/jobs/recur", "priority"): "of an unknown job: nothing, as the seed has it",
}


@pytest.mark.parametrize(("scenario", "lines"), scenarios("perscript-basic").items())
def test_each_script(scenario: str, lines: list[Line]) -> None:
    desk = QlessDesk()
    for index, line in enumerate(lines):
        desk.published = []
        reply = desk.answer_script(line)
        if (scenario, line.script) not in OTHERWISE:
            assert same(reply, line.reply), told(index, line, reply)
            assert desk.published_in_scripts() == line.published, told(index, line, desk.published)
    invariants.check(desk.memory)
    assert picture(replayed(desk)) == picture(desk.memory)


def test_most_of_a_long_walk_through_the_scripts() -> None:
    agreed = 0
    for lines in scenarios("perscript-fuzz").values():
        desk = QlessDesk()
        for line in lines:
            desk.published = []
            reply = desk.answer_script(line)
            agreed += same(reply, line.reply) and desk.published_in_scripts() == line.published
        invariants.check(desk.memory)
        assert picture(replayed(desk)) == picture(desk.memory)
    assert agreed >= 2_388, f"{agreed} of 2,696"


def test_most_of_a_long_walk_through_the_script_of_2013() -> None:
    agreed = 0
    for lines in scenarios("unified13-fuzz").values():
        desk = QlessDesk()
        desk.dialect = UNIFIED_2013
        for line in lines:
            desk.published = []
            reply = desk.answer(line.call)
            agreed += same(reply, line.reply) and desk.published == line.published
        invariants.check(desk.memory)
        assert picture(replayed(desk)) == picture(desk.memory)
    assert agreed >= 1_384, f"{agreed} of 1,503"
