"""The examples of the scoring maths are run, and everything public says what the caller gets."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

from forecast_rank import metrics

MODULES = sorted(f"{metrics.__name__}.{module.name}" for module in pkgutil.iter_modules(metrics.__path__))
INSIDE = {
    f"forecast_rank.metrics.{name}"
    for name in (
        "blocks",
        "flat_arrays",
        "staking",
        "calibration_bins",
        "linear_pool",
        "irt_marginal_over_forecasters",
        "irt_marginal_over_questions",
    )
}
"""The workings that the metrics share: shown by the examples of those."""


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.failed == 0
    assert results.attempted or name in INSIDE


@pytest.mark.parametrize("name", MODULES)
def test_all_that_is_public_says_what_the_caller_gets(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    for label, thing in vars(module).items():
        own = getattr(thing, "__module__", None) == name and not label.startswith("_")
        if own and (inspect.isfunction(thing) or inspect.isclass(thing)):
            assert inspect.getdoc(thing), f"{name}.{label}"
