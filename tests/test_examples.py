"""Every public name has an example, and the examples run."""

import doctest
import inspect

import pytest

import solid_bandits as sb
from public_names import PUBLIC

# They call a service that runs; the code of docs/service.md is run beside one.
NEED_SERVICE = {"client.Client", "client.AsyncClient", "client.ServiceError"}


def test_the_public_packages_say_what_they_offer():
    for name in ("bounds", "extend", "logs", "rivals", "ope", "problems", "streams"):
        assert len(getattr(sb, name).__all__) >= 3


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example_that_runs_in_an_empty_session(name):
    found = doctest.DocTestParser().get_doctest(inspect.getdoc(PUBLIC[name]), {}, name, None, 0)
    skipped = [example for example in found.examples if example.options.get(doctest.SKIP)]
    assert found.examples
    assert bool(skipped) == (name in NEED_SERVICE)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(found)
    assert runner.failures == 0
