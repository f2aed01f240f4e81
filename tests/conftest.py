from hypothesis import HealthCheck, settings

from solid_bandits._internal import waiting

waiting.PATIENCE = 3600.0  # nobody waits here for a word while it compiles

# Fixed examples, and no database of earlier ones: a test that passes here passes everywhere. Compilation makes first
# calls slow, and other work any call: no deadline, and no check of how long examples take to be made.
settings.register_profile(
    "fixed",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=40,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")
