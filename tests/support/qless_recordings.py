"""The recorded sessions with the original qless scripts, by dialect."""

from typing import Final

from crossdock.protocols.redis.qless.call import PER_SCRIPT, PHP, REQLESS, UNIFIED, UNIFIED_2013
from tests.qless.replay import scenarios

DIALECTS: Final = {
    "unified-basic": UNIFIED,
    "unified-fuzz": UNIFIED,
    "unified13-fuzz": UNIFIED_2013,
    "reqless-fuzz": REQLESS,
    "php-fuzz": PHP,
    "perscript-basic": PER_SCRIPT,
    "perscript-fuzz": PER_SCRIPT,
}


RECORDINGS: Final = {name: scenarios(name) for name in DIALECTS}
