import pytest
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


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="only the tests that are marked long")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Of the two tiers, one is run: the tests, or what is marked long."""
    kept = [
        one for one in items if (one.get_closest_marker("long") is not None) == config.getoption("--long")
    ]
    config.hook.pytest_deselected(items=[one for one in items if one not in set(kept)])
    items[:] = kept
