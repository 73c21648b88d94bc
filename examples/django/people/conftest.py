"""A database in memory. Projects that use pytest-django do not need this file."""

import os

import django
import pytest

os.environ["DJANGO_SETTINGS_MODULE"] = "mysite.settings"
os.environ["MYSITE_DATABASE"] = ":memory:"
django.setup()


@pytest.fixture(autouse=True)
def database():
    from django.core.management import call_command

    call_command("migrate", run_syncdb=True, verbosity=0)
    yield
    call_command("flush", interactive=False, verbosity=0)
