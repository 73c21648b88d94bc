"""The fixture `jobs`: what was pushed, running it, and the clock."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar

import msgspec

from crossdock.app import encoding
from crossdock.app.app import App
from crossdock.app.execute import Ack
from crossdock.app.handle import Handle
from crossdock.app.outcomes import OutcomeBase
from crossdock.app.task import Task
from crossdock.client.client import Client
from crossdock.client.jobs import FetchedJob
from crossdock.model.events import AnyEvent
from crossdock.testing.calls import Expectation, Signature
from crossdock.testing.clients import ObservedAsyncClient, ObservedClient
from crossdock.testing.clock import Clock
from crossdock.testing.errors import TestingError
from crossdock.testing.pushed import PushedJob, PushRecord
from crossdock.testing.runner import LIMIT, ExecutedJob, Runner, perform
from crossdock.testing.server import LocalServer

P = ParamSpec("P")
R = TypeVar("R")
