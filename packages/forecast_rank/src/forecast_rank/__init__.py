"""Proper scores, calibration, returns and rankings with uncertainty for probability forecasts.

>>> import forecast_rank as fr
>>> report = fr.rank("forecasts.csv", metrics="brier,log")  # doctest: +SKIP
>>> panel = fr.from_arrays([[[0.8, 0.2]]], [[1, 0]])
>>> fr.brier(panel).round(2).tolist()
[0.04]

Names are loaded at their first use, so that importing the package is quick: SciPy, polars, rich and matplotlib are
imported only by the functions that need them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

# fmt: off
# isort: off
if TYPE_CHECKING:  # the names of _MODULES below, for type checkers and editors
    from forecast_rank.api import compare as compare, rank as rank
    from forecast_rank.sources import read as read
    from forecast_rank.partial import Partial as Partial
    from forecast_rank.reports import Report as Report
    from forecast_rank.metrics.agreement import agreement as agreement, kendall as kendall, spearman as spearman
    from forecast_rank.metrics.bradley_terry import (
        exponential_form as exponential_form, pairwise_ability as pairwise_ability, pool_weights as pool_weights
    )
    from forecast_rank.metrics.brier import brier_score as brier_score, skill_score as skill_score
    from forecast_rank.metrics.calibration import (
        ece as ece, ece_noise_floor as ece_noise_floor, max_calibration_error as max_calibration_error,
        murphy_decomposition as murphy_decomposition, reliability_curve as reliability_curve, sharpness as sharpness
    )
    from forecast_rank.metrics.calibration_error import (
        ece_debiased as ece_debiased, unbiased_ece as unbiased_ece,
        unbiased_ece_at_levels as unbiased_ece_at_levels
    )
    from forecast_rank.metrics.corp import corp_curve as corp_curve, corp_decomposition as corp_decomposition
    from forecast_rank.metrics.difficulty_adjustment import adjusted_brier as adjusted_brier
    from forecast_rank.metrics.discrimination import auc as auc, auc_sums as auc_sums
    from forecast_rank.metrics.irt import (
        discrimination_weights as discrimination_weights, fit_irt as fit_irt, weighted_brier as weighted_brier
    )
    from forecast_rank.metrics.metaculus_scores import (
        baseline_score as baseline_score, peer_score as peer_score, time_weighted_scores as time_weighted_scores
    )
    from forecast_rank.metrics.paired_tests import (
        benjamini_hochberg as benjamini_hochberg, corrected_margins as corrected_margins, holm as holm,
        mean_tests as mean_tests, paired_tests as paired_tests, questions_needed as questions_needed
    )
    from forecast_rank.metrics.panel import (
        Panel as Panel, Questions as Questions, from_arrays as from_arrays, references as references
    )
    from forecast_rank.metrics.proper_scores import (
        accuracy as accuracy, brier as brier, brier_sum as brier_sum, by_category as by_category,
        infinite_losses as infinite_losses, log_score as log_score, settled as settled, spherical as spherical
    )
    from forecast_rank.metrics.ranked_probability import ranked_probability as ranked_probability
    from forecast_rank.metrics.returns import (
        average_return as average_return, cash_stakes as cash_stakes, certainty_equivalent as certainty_equivalent,
        log_wealth as log_wealth, return_stream as return_stream, ruins as ruins, stakes as stakes
    )
    from forecast_rank.metrics.skill import (
        alpha as alpha, alpha_mean as alpha_mean, brier_skill as brier_skill,
        brier_skill_against as brier_skill_against, market_brier as market_brier,
        market_probability as market_probability, overround as overround, uniform_brier as uniform_brier
    )
    from forecast_rank.metrics.sample_mean import (
        bounded_cluster_interval as bounded_cluster_interval, clopper_pearson as clopper_pearson,
        cluster_interval as cluster_interval, clustered_share_intervals as clustered_share_intervals,
        t_interval as t_interval
    )
    from forecast_rank.metrics.running_intervals import running_intervals as running_intervals
    from forecast_rank.metrics.simultaneous_ranks import simultaneous_rank_ranges as simultaneous_rank_ranges
    from forecast_rank.metrics.studentised import (
        studentised_draws as studentised_draws, studentised_interval as studentised_interval
    )
    from forecast_rank.metrics.thurstone_mosteller import margin_ability as margin_ability
    from forecast_rank.metrics.uncertainty import (
        EventSums as EventSums, bca_interval as bca_interval, bootstrap_means as bootstrap_means,
        cluster_se as cluster_se, event_sums as event_sums, linearised_sums as linearised_sums,
        percentile_interval as percentile_interval,
        resample_counts as resample_counts, table_sums as table_sums
    )
    from forecast_rank.ranking.forecasts import (
        LoadedForecasts as LoadedForecasts, read_rows as read_rows, usable_rows as usable_rows
    )
    from forecast_rank.ranking.rejections import (
        InvalidRow as InvalidRow, RejectedLine as RejectedLine, TooFewForecasts as TooFewForecasts
    )
    from forecast_rank.ranking.report import rank_panel as rank_panel
    from forecast_rank.ranking.json_values import to_json_value as to_json_value
    from forecast_rank.ranking.scores import METRICS as METRICS
    from forecast_rank.ranking.settings import InvalidSetting as InvalidSetting, Settings as Settings
    from forecast_rank.files.faults import UnreadableFile as UnreadableFile
# isort: on
# fmt: on

_MODULES = {
    "api": ("compare", "rank"),
    "sources": ("read",),
    "partial": ("Partial",),
    "reports": ("Report",),
    "ranking.forecasts": ("LoadedForecasts", "read_rows", "usable_rows"),
    "ranking.rejections": ("InvalidRow", "RejectedLine", "TooFewForecasts"),
    "ranking.report": ("rank_panel",),
    "ranking.json_values": ("to_json_value",),
    "ranking.scores": ("METRICS",),
    "ranking.settings": ("InvalidSetting", "Settings"),
    "files.faults": ("UnreadableFile",),
    "metrics.corp": ("corp_curve", "corp_decomposition"),
    "metrics.metaculus_scores": ("baseline_score", "peer_score", "time_weighted_scores"),
    "metrics.ranked_probability": ("ranked_probability",),
    "metrics.running_intervals": ("running_intervals",),
    "metrics.agreement": ("agreement", "kendall", "spearman"),
    "metrics.bradley_terry": ("exponential_form", "pairwise_ability", "pool_weights"),
    "metrics.brier": ("brier_score", "skill_score"),
    "metrics.calibration": (
        "ece", "ece_noise_floor", "max_calibration_error", "murphy_decomposition", "reliability_curve", "sharpness",
    ),
    "metrics.calibration_error": ("ece_debiased", "unbiased_ece", "unbiased_ece_at_levels"),
    "metrics.difficulty_adjustment": ("adjusted_brier",),
    "metrics.discrimination": ("auc", "auc_sums"),
    "metrics.irt": ("discrimination_weights", "fit_irt", "weighted_brier"),
    "metrics.paired_tests": (
        "benjamini_hochberg", "corrected_margins", "holm", "mean_tests", "paired_tests", "questions_needed",
    ),
    "metrics.panel": ("Panel", "Questions", "from_arrays", "references"),
    "metrics.proper_scores": (
        "accuracy", "brier", "brier_sum", "by_category", "infinite_losses", "log_score", "settled", "spherical",
    ),
    "metrics.returns": (
        "average_return", "cash_stakes", "certainty_equivalent", "log_wealth", "return_stream", "ruins", "stakes",
    ),
    "metrics.skill": (
        "alpha", "alpha_mean", "brier_skill", "brier_skill_against", "market_brier", "market_probability", "overround",
        "uniform_brier",
    ),
    "metrics.sample_mean": (
        "bounded_cluster_interval", "clopper_pearson", "cluster_interval", "clustered_share_intervals", "t_interval",
    ),
    "metrics.simultaneous_ranks": ("simultaneous_rank_ranges",),
    "metrics.studentised": ("studentised_draws", "studentised_interval"),
    "metrics.thurstone_mosteller": ("margin_ability",),
    "metrics.uncertainty": (
        "EventSums", "bca_interval", "bootstrap_means", "cluster_se", "event_sums", "linearised_sums",
        "percentile_interval", "resample_counts", "table_sums",
    ),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *sorted(_MODULE_OF)]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'forecast_rank' has no attribute {name!r}")
    value = getattr(import_module(f"forecast_rank.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
