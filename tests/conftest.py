from hypothesis import settings

from solid_bandits._internal import waiting

waiting.PATIENCE = 3600.0  # nobody waits here for a word while it compiles

# Fixed examples: a test that passes here passes everywhere. Compilation makes first calls slow, so no deadline.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=40, print_blob=True)
settings.load_profile("fixed")
