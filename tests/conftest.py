"""Hypothesis profiles: `pytest --hypothesis-profile thorough` runs twenty times as many examples, `quick` a quarter."""

from hypothesis import HealthCheck, settings

# No deadline, because a test machine may pause for longer than any example takes.
settings.register_profile("crossdock", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("crossdock"), max_examples=2_000)
settings.register_profile("quick", settings.get_profile("crossdock"), max_examples=25)
settings.load_profile("crossdock")
