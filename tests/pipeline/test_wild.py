"""Whatever happens, the tables say what the live statistics say, and a rebuild changes nothing."""

import pytest

from crossdock.model.events import Flushed
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.rebuild import rebuild
from crossdock.pipeline.run import run
from tests.pipeline.agreeing import assert_live
from tests.pipeline.lakes import Lake
from tests.pipeline.pictures import assert_same, picture
from tests.pipeline.wild import WildLoad


def grow(seed: int, works: PipelineContext, times: int, acts: int) -> None:
    load, lake, written = WildLoad(seed), Lake(works.lake), 0
    draw = load.random.random
    for _ in range(times):
        load.go(acts)
        if draw() < 0.3:
            load.flush()
            load.go(acts // 3)
        lake.cut(load.events[written:], acts)
        written = len(load.events)
        run(works)
        if draw() < 0.5:
            lake.expire(load.random.choice([1, 9, 40]), load.all_protocols.dispatcher.now.wall)
            run(works)
        flush_epoch = sum(type(event) is Flushed for event in load.events)
        assert_live(load.all_protocols.dispatcher.state.stats, works.tables_folder, flush_epoch)
    before = picture(works.tables_folder)
    rebuild(works)
    assert_same(picture(works.tables_folder), before)
    assert all(before[name] for name in ("daily", "histogram", "hourly", "forecast", "attempts", "workers", "flows"))
    lake.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3])
def test_a_wild_load(works: PipelineContext, seed: int) -> None:
    grow(seed, works, 2, 150)
