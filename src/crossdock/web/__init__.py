"""The HTTP listener, in a process of its own: the API, the dashboard and metrics.

It talks to the server through the admin socket, so a slow page never slows a protocol.
"""
