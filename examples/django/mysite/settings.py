"""Settings of the project."""

import os

SECRET_KEY = "only for this example"
ALLOWED_HOSTS = ["localhost", "testserver"]
ROOT_URLCONF = "mysite.urls"
INSTALLED_APPS = ["people"]
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ.get("MYSITE_DATABASE", "mysite.db")}
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

CROSSDOCK_URL = os.environ.get("CROSSDOCK_URL", "crossdock://localhost:7419")
