"""The original qless scripts on a real Redis 7.0 and Crossdock receive the same calls, valid and invalid."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from crossdock.protocols.redis.qless.call import REQLESS_013, UNIFIED_2013, Dialect
from tests.qless.replay import QlessDispatcher, same
from tests.support.qless_calls import RIGHT, SETTING, calls, spoilt
from tests.support.redis_beside import RealRedis, missing_redis

MISSING = missing_redis()
pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(MISSING is not None, reason=f"NO REAL REDIS WAS COMPARED WITH: {MISSING}"),
]

#: Package, script, dialect.
SCRIPTS: Final = [
    ("qless", "qless-core/qless.lua", UNIFIED_2013),
    ("reqless", "lua/qless.lua", REQLESS_013),
]

#: Refused by Crossdock. The script stores the value and fails later, when it should create or lease the job.
KEPT: Final = re.compile(
    r"(the maximum of a throttle is not|Recur\(\): Arg \"interval\" must be|bad argument #1 to 'i)"
)

_PLACE: Final = re.compile(r"(?:ERR )?user_script:\d+: ")
_WHERE: Final = re.compile(r" ?script: [0-9a-f]{40}, on @user_script:\d+\.$")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    with RealRedis(tmp_path_factory.mktemp("beside")) as real, redis.Redis(port=real.port, protocol=2) as client:
        yield client


def script(package: str, name: str) -> str:
    """The source of a script.

    The oldest one adds to Lua's global `table`, which Redis now forbids. Both uses are replaced by a local function.
    """
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    text = Path(spec.origin).parent.joinpath(name).read_text()
    return text.replace("function table.extend", "local function table_extend").replace(
        "table.extend(", "table_extend("
    )


def real(client: redis.Redis, sha: str, call: list[str]) -> dict[str, Any]:
    try:
        return _recorded(client.evalsha(sha, 0, *call))
    except redis.ResponseError as error:
        text = _WHERE.sub("", _PLACE.sub("", str(error), count=1))
        return {"err": re.sub("table: 0x[0-9a-f]+", "table: 0x0", text)}


def _recorded(reply: Any) -> dict[str, Any]:
    if reply is None:
        return {"nil": True}
    if isinstance(reply, bytes):
        return {"bulk": reply.decode()}
    return {"int": reply} if isinstance(reply, int) else {"array": [_recorded(each) for each in reply]}


@pytest.mark.parametrize(("package", "name", "dialect"), SCRIPTS, ids=[each[0] for each in SCRIPTS])
def test_an_error_is_reported_with_the_scripts_message(
    client: redis.Redis, package: str, name: str, dialect: Dialect
) -> None:
    sha = client.script_load(script(package, name))
    setting, right = calls(SETTING), calls(RIGHT)
    if dialect.old:  # `put` has no worker argument
        setting = [[*call[:2], *call[3:]] if call[0] == "put" else call for call in setting]
        right = [[call[0], *call[2:]] if call[0] == "put" else call for call in right]
    parted = []
    for command, *words in spoilt(right):
        client.flushdb()
        dispatcher = QlessDispatcher()
        dispatcher.dialect = dialect
        with client.pipeline(transaction=False) as both:
            for each in setting:
                dispatcher.call(*each)
                both.evalsha(sha, 0, *each)
            both.execute()
        call = [command, "30", *words]
        ours, theirs = dispatcher.answer(call), real(client, sha, call)
        if not same(ours, theirs) and ("err" in theirs or not KEPT.match(ours.get("err", ""))):
            parted.append((call, ours, theirs))
    assert not parted
