"""The users."""

from django.db import models


class User(models.Model):
    name = models.CharField(max_length=100, unique=True)
    welcomed = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.name
