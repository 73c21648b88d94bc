"""Test helpers: the real engine in the test's process, without sockets or files, with a clock that the test moves."""
