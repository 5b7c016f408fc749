"""Modules that few tests need and that take long to load."""

from importlib import import_module
from typing import Any


class LazyModule:
    """A module that is imported when a test first uses it, since each worker collects every test file."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # by which pytest looks for fixtures and marks among the names of a file
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)


arena_evaluation = LazyModule("arena_evaluation")
plots = LazyModule("forecast_rank.ranking.plots")
plt = LazyModule("matplotlib.pyplot")
mcp = LazyModule("mcp")
pd = LazyModule("pandas")
pl = LazyModule("polars")
integrate = LazyModule("scipy.integrate")
optimize = LazyModule("scipy.optimize")
special = LazyModule("scipy.special")
stats = LazyModule("scipy.stats")
resampling = LazyModule("scipy.stats._resampling")
schemathesis = LazyModule("schemathesis")
sklearn_calibration = LazyModule("sklearn.calibration")
sklearn_isotonic = LazyModule("sklearn.isotonic")
linear_model = LazyModule("sklearn.linear_model")
sklearn_metrics = LazyModule("sklearn.metrics")
sm = LazyModule("statsmodels.api")
multitest = LazyModule("statsmodels.stats.multitest")
statsmodels_power = LazyModule("statsmodels.stats.power")
proportion = LazyModule("statsmodels.stats.proportion")
