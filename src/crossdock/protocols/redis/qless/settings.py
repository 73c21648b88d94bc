"""Settings: defaults under what was set (protocol page, qless 8)."""

from typing import Final

from crossdock.engine.qless.history import number as setting
from crossdock.engine.state import EngineState
from crossdock.model.commands.qless import Configure
from crossdock.protocols.redis.keys.values import REPLY_BYTES, TOO_LARGE
from crossdock.protocols.redis.qless import cjson
from crossdock.protocols.redis.qless.arguments import Raised
from crossdock.protocols.redis.qless.call import Call, Reply

DEFAULTS: Final[dict[str, str | int]] = {
    "application": "qless",
    "grace-period": 10,
    "stats-history": 30,
    "jobs-history": 604_800,
    "heartbeat": 60,
    "jobs-history-count": 50_000,
    "histogram-history": 7,
}
REQLESS_DEFAULTS: Final[dict[str, str | int]] = {
    "application": "reqless",
    "grace-period": "10",
    "heartbeat": "60",
    "jobs-history": "604800",
    "jobs-history-count": "50000",
    "max-job-history": "100",
    "max-pop-retry": "1",
    "max-worker-age": "86400",
}
PHP_DEFAULTS: Final = DEFAULTS | {"jobs-failed-history": 604_800, "backoff-initial-delay": 0, "backoff-factor": 3}

#: Settings are looked through whenever one is set; a queue may have several.
OPTIONS_AT_MOST: Final = 10_000
VALUE_AT_MOST: Final = 65_536

_HEARTBEAT_S: Final = 60.0


def heartbeat(state: EngineState, queue: str) -> float:
    """How long a lease lasts. The seed has the queue's name behind, all clients before (page 0, conflict 3)."""
    if not state.qless.config:
        return _HEARTBEAT_S
    for option in (f"{queue}-heartbeat", f"heartbeat-{queue}"):
        if option in state.qless.config:
            return setting(state, option, _HEARTBEAT_S)
    return setting(state, "heartbeat", _HEARTBEAT_S)


def get(call: Call) -> Reply:
    option, known = call[0], call.state.qless.config
    defaults = REQLESS_DEFAULTS if call.dialect.renamed else PHP_DEFAULTS if call.dialect.php else DEFAULTS
    if call.dialect.in_scripts:
        defaults = {each: value for each, value in DEFAULTS.items() if each != "grace-period"}
    if option is None:
        if sum(map(len, known.values())) > REPLY_BYTES:
            raise TOO_LARGE
        return cjson.write(defaults | known)
    return known.get(option, defaults.get(option))


def put(call: Call) -> Reply:
    option = call.require(0, 'config.set(): Arg "option" missing')
    value = call.text(1, 'config.set(): Arg "value" missing')
    if len(value) > VALUE_AT_MOST:
        raise Raised(f"the value of a setting has more than {VALUE_AT_MOST} characters")
    if option not in call.state.qless.config:
        if len(call.state.qless.config) >= OPTIONS_AT_MOST:
            raise Raised(f"{OPTIONS_AT_MOST} settings are there, the limit; config.unset forgets one")
        call.refuse_if_full()
    call.dispatcher.do(Configure(option, value))
    return None


def unset(call: Call) -> Reply:
    call.dispatcher.do(Configure(call.require(0, 'config.unset(): Arg "option" missing'), None))
    return None
