"""The tasks of this app."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import close_old_connections

from crossdock import App
from people.models import User

P = ParamSpec("P")
R = TypeVar("R")

app = App(settings.CROSSDOCK_URL, name="mysite")


def with_database(function: Callable[P, R]) -> Callable[P, R]:
    """A worker runs for days: connections that the database has closed are replaced, as Django does for a request."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return wrapped


@app.task(queue="mail", retries=5)
@with_database
def welcome(user_id: int) -> str:
    user = User.objects.get(pk=user_id)
    user.welcomed = True
    user.save(update_fields=["welcomed"])
    return f"welcome, {user.name}"
