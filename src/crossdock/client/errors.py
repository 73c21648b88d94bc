"""What can go wrong between a client and a server.

CrossdockError
└── ClientError
    ├── NoServer       nobody answers there
    ├── Refused        the server said no; the text is its own
    └── Broken         the connection ended, or what came over it was no answer
"""

from crossdock.model.errors import CrossdockError


class ClientError(CrossdockError):
    """Something between this client and its server."""


class NoServer(ClientError):
    """Nobody answers where the server should be."""


class Refused(ClientError):
    """The server did not do it; the text is its own."""


class Broken(ClientError):
    """Whether the last request was carried out is not known."""
