"""The configuration of qless: defaults, and the values that clients set (qless.md section 8)."""

from typing import Final

from crossdock.engine.qless import queries
from crossdock.model.commands.qless import Configure
from crossdock.protocols.redis.keys.values import REPLY_BYTES, TOO_LARGE
from crossdock.protocols.redis.qless import cjson
from crossdock.protocols.redis.qless.arguments import QlessError
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

#: Options that clients may set. All are scanned whenever one is set. A queue may have several.
OPTIONS_AT_MOST: Final = 10_000
VALUE_AT_MOST: Final = 65_536


def get(call: Call) -> Reply:
    option, known = call[0], queries.settings(call.state)
    defaults = REQLESS_DEFAULTS if call.dialect.is_reqless else PHP_DEFAULTS if call.dialect.php else DEFAULTS
    if call.dialect.per_script:
        defaults = {each: value for each, value in DEFAULTS.items() if each != "grace-period"}
    if option is None:
        if sum(map(len, known.values())) > REPLY_BYTES:
            raise TOO_LARGE
        return cjson.write({**defaults, **known})
    return known.get(option, defaults.get(option))


def put(call: Call) -> Reply:
    option = call.require(0, 'config.set(): Arg "option" missing')
    value = call.text(1, 'config.set(): Arg "value" missing')
    if len(value) > VALUE_AT_MOST:
        raise QlessError(f"the value of an option may have at most {VALUE_AT_MOST} characters")
    known = queries.settings(call.state)
    if option not in known:
        if len(known) >= OPTIONS_AT_MOST:
            raise QlessError(f"{OPTIONS_AT_MOST} options are set, which is the limit; remove some with config.unset")
        call.refuse_if_full()
    call.dispatcher.do(Configure(option, value))
    return None


def unset(call: Call) -> Reply:
    call.dispatcher.do(Configure(call.require(0, 'config.unset(): Arg "option" missing'), None))
    return None
