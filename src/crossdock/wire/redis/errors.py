"""Redis' own error texts: clients compare them, or at least their first word."""

from typing import Final

from crossdock.wire.redis.values import Error

#: How much of a request an error repeats.
_ECHO: Final = 128

WRONG_TYPE: Final = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
SYNTAX: Final = Error("ERR syntax error")
NOT_AN_INTEGER: Final = Error("ERR value is not an integer or out of range")
NOT_POSITIVE: Final = Error("ERR value is out of range, must be positive")
NOT_A_FLOAT: Final = Error("ERR value is not a valid float")
NO_SCRIPT: Final = Error("NOSCRIPT No matching script. Please use EVAL.")
NO_AUTH: Final = Error("NOAUTH Authentication required.")
EXEC_ABORT: Final = Error("EXECABORT Transaction discarded because of previous errors.")
NOT_IN_MULTI: Final = Error("ERR Command not allowed inside a transaction")


def shown(word: bytes, at_most: int = _ECHO) -> bytes:
    """A word of a request as an error repeats it: C's strings end at a zero byte."""
    return word.partition(b"\0")[0][:at_most]


def arity(name: bytes) -> Error:
    return Error(b"ERR wrong number of arguments for '%b' command" % name)


def exec_refused(error: Error) -> Error:
    """What is wrong with EXEC itself ends the transaction."""
    return Error(b"EXECABORT Transaction discarded because of: %b" % error.text.removeprefix(b"ERR "))


def wrong_words(container: bytes, word: bytes) -> Error:
    return Error(
        b"ERR unknown subcommand or wrong number of arguments for '%b'. Try %b HELP." % (shown(word), container.upper())
    )


def unknown_command(request: list[bytes]) -> Error:
    excerpt = b""
    for word in request[1:]:
        if len(excerpt) >= _ECHO:
            break
        excerpt += b"'%b' " % shown(word, _ECHO - len(excerpt))
    return Error(b"ERR unknown command '%b', with args beginning with: %b" % (shown(request[0]), excerpt))


def unknown_subcommand(container: bytes, word: bytes) -> Error:
    return Error(b"ERR unknown subcommand '%b'. Try %b HELP." % (shown(word), container.upper()))


def not_while_subscribed(name: bytes) -> Error:
    return Error(
        b"ERR Can't execute '%b': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
        b"context" % name
    )
