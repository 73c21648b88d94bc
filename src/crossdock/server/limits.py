"""Bounds of a connection that no protocol knows of (MODEL section 12)."""

from typing import Final

import msgspec

#: Requests handled in one go before others get their turn.
REQUESTS_A_PASS: Final = 64

#: Or fewer, when they took so long: a pipeline of heavy ones holds others up by one of them.
PASS_S: Final = 0.000_25

#: Time in each pass of the event loop that all long answers share, however many there are.
SLICES_S: Final = 0.001

#: Requests read ahead while one blocks; then the socket is not read until they are worked off.
READ_AHEAD: Final = 64 * 1024

#: Of what was read so many bytes are cut into requests in each pass of the event loop: less than a millisecond's work.
PIECE: Final = 8 * 1024

#: How many times the bound of unread replies a subscriber may be behind. A burst of one turn comes at once, however
#: fast its reader is; Redis allows 8 MiB for a minute.
PUSHED_UNREAD: Final = 8

#: A larger reply is counted at once, and dropped with its connection. Smaller ones are counted when the peer does not
#: read them, and once a second.
LARGE_REPLY: Final = 16 * 1024

#: Records beside the jobs (queues, tags and the like) that nobody counts. Each one more takes the place of a job.
RECORDS_FREE: Final = 10_000


class Limits(msgspec.Struct, frozen=True):
    connections: int = 10_000
    jobs: int = 10_000_000
    unread_bytes: int = 1024 * 1024  #: replies a client may leave unread before its requests are not read either
    unfinished_bytes: int = 256 * 1024 * 1024  #: of all clients' long requests: under way, or worked on in slices
    reply_bytes: int = 256 * 1024 * 1024  #: of all clients' replies that have not left yet
