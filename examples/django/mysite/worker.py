"""What the worker imports: Django first, then the tasks. `crossdock worker run mysite.worker`"""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
django.setup()

from people.tasks import app  # noqa: E402 models can be imported only after the setup

__all__ = ["app"]
