"""Every public name has an example, and the examples run."""

import doctest
import inspect

import pytest

import solid_bandits as sb
import solid_bandits.identification

# They call a service that runs; the code of docs/service.md is run beside one.
NEED_SERVICE = {"client.Client", "client.AsyncClient", "client.ServiceError"}
DATA = {"extend.OF_A_TRIANGLE", "logs.COLUMNS", "ope.ESTIMATORS"}


def public_names():
    """Dotted name -> object, of everything that `sb` and its public packages offer."""
    found = {}
    for name in [*sb.__all__, "identification"]:  # which is imported by its name
        value = getattr(sb, name)
        if not inspect.ismodule(value):
            found[name] = value
            continue
        for inner in getattr(value, "__all__", []):
            if not inspect.ismodule(getattr(value, inner)):
                found[f"{name}.{inner}"] = getattr(value, inner)
    return {name: value for name, value in found.items() if name not in DATA}


PUBLIC = public_names()


def examples(name):
    return doctest.DocTestParser().get_doctest(inspect.getdoc(PUBLIC[name]), {}, name, None, 0)


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
