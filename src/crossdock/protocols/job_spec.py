"""Bounds on jobs that every protocol shares."""

from typing import Final

NAME_BYTES: Final = 255
