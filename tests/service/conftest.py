from collections.abc import Iterator

import pytest

from cluster import Cluster, binaries, cluster


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """One PostgreSQL for all tests of a process; each makes a database of its own."""
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed: looked for initdb")
    with cluster() as running:
        yield running
