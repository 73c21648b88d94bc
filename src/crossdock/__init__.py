"""Crossdock: a durable job server that speaks the wire protocols of several others."""

__version__ = "0.1.0.dev0"
