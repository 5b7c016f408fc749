"""The package's side of `tests.benchmarks.metrics`: runs under its own interpreter, imports nothing of the project.

Reads arrays that the benchmark wrote, builds the package's objects, times its models, and prints one JSON line for
each: {"name", "seconds", "scaled"}. Resamples and steps of which some were done are scaled to a thousand of them.
"""

import json
import random
import resource
import sys
import time
from datetime import UTC, datetime, timedelta

import numpy as np


def tell(name: str, seconds: float, scale: float = 1.0, **fields: object) -> None:
    print(json.dumps({"name": name, "seconds": seconds * scale, "scaled": scale, **fields}), flush=True)


def timed(name: str, act, scale: float = 1.0):
    began = time.perf_counter()
    result = act()
    tell(name, time.perf_counter() - began, scale)
    return result


def build(data):
    """The package's objects from flat arrays; what it calls loading, without any parsing of text."""
    from pm_rank.data.base import ForecastChallenge, ForecastEvent, ForecastProblem

    now = datetime(2026, 1, 1, tzinfo=UTC)
    names, questions = data["forecasters"].tolist(), data["questions"].tolist()
    forecaster, question, offsets = data["forecaster"].tolist(), data["question"].tolist(), data["offsets"].tolist()
    probabilities, yes, no = data["probability"].tolist(), data["odds"].tolist(), data["no_odds"].tolist()
    option_offsets, outcome = data["option_offsets"].tolist(), data["outcome"].tolist()
    rows_by_question = [[] for _ in questions]
    for i, (forecaster_index, question_index) in enumerate(zip(forecaster, question, strict=True)):
        cells = slice(offsets[i], offsets[i + 1])
        rows_by_question[question_index].append(
            ForecastEvent(
                forecast_id=str(i),
                problem_id=questions[question_index],
                username=names[forecaster_index],
                timestamp=now,
                probs=probabilities[cells],
                odds=yes[cells],
                no_odds=no[cells],
            )
        )
    problems = [
        ForecastProblem(
            title=questions[j],
            problem_id=questions[j],
            options=[str(k) for k in range(option_offsets[j + 1] - option_offsets[j])],
            correct_option_idx=[k for k, y in enumerate(outcome[option_offsets[j] : option_offsets[j + 1]]) if y],
            forecasts=forecasts,
            end_time=now + timedelta(minutes=j),
            num_forecasters=len(forecasts),
        )
        for j, forecasts in enumerate(rows_by_question)
        if forecasts
    ]
    return ForecastChallenge(title="made", forecast_problems=problems)


def main() -> None:
    path, metrics, resamples, steps = sys.argv[1], set(sys.argv[2].split(",")), int(sys.argv[3]), int(sys.argv[4])
    data = np.load(path)
    if "irt" not in metrics:
        sys.modules["torch"] = None  # type: ignore[assignment]  # it weighs more than the forecasts do
    from pm_rank.model.average_return import AverageReturn
    from pm_rank.model.bradley_terry import GeneralizedBT
    from pm_rank.model.calibration import CalibrationMetric
    from pm_rank.model.scoring_rule import BrierScoringRule, LogScoringRule, SphericalScoringRule
    from pm_rank.model.utils import BootstrapCIConfig

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    challenge = build(data)
    tell("loading", time.perf_counter() - began, mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    problems = challenge.forecast_problems
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(problems))
    parts = {
        "brier": lambda: BrierScoringRule().fit(problems),
        "log": lambda: LogScoringRule().fit(problems),
        "spherical": lambda: SphericalScoringRule().fit(problems),
        "weighted brier": lambda: BrierScoringRule().fit(problems, problem_discriminations=weights),
        "average return 0": lambda: AverageReturn().fit(problems),
        "average return 0.5": lambda: AverageReturn(risk_aversion=0.5).fit(problems),
        "return stream": lambda: AverageReturn().fit_stream(
            challenge.stream_problems("sequential", increment=max(1, len(problems) // 200))
        ),
        "calibration": lambda: CalibrationMetric(weight_event=False).fit(problems),
        "calibration by count": lambda: CalibrationMetric(weight_event=False, strategy="quantile").fit(problems),
        "bradley_terry": lambda: GeneralizedBT().fit(problems),
    }
    for name, act in parts.items():
        if name in metrics:
            timed(name, act)
    if "bootstrap" in metrics:
        began = time.perf_counter()
        BrierScoringRule().fit(problems)
        plain = time.perf_counter() - began
        random.seed(0)
        settings = BootstrapCIConfig(num_bootstrap_samples=resamples)
        began = time.perf_counter()
        BrierScoringRule().fit(problems, include_bootstrap_ci=True, bootstrap_ci_config=settings)
        tell("bootstrap", time.perf_counter() - began - plain, 1000 / resamples)
    if "irt" in metrics:
        from pm_rank.model.irt._pyro_models import IRTModel, SVIConfig

        IRTModel().fit(problems[:20], method="SVI", config=SVIConfig(num_steps=1))  # the first step ever is slow
        began = time.perf_counter()
        IRTModel().fit(problems, method="SVI", config=SVIConfig(num_steps=1))
        first = time.perf_counter() - began
        began = time.perf_counter()
        IRTModel().fit(problems, method="SVI", config=SVIConfig(num_steps=1 + steps))
        spent = time.perf_counter() - began - first
        tell("irt", first + spent * 999 / steps)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tell("memory", 0.0, mib=peak / 1024, before=before / 1024)


if __name__ == "__main__":
    main()
