"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# A busy machine is no reason to fail: tests never assert times, and each has a time limit anyway.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
