"""The worker: a supervisor process that talks to the server, and child processes that run tasks."""
