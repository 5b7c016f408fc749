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

__version__ = "0.2.0"

# fmt: off
# isort: off
if TYPE_CHECKING:  # the names of _MODULES below, for type checkers and editors
    from forecast_rank.api import compare as compare, rank as rank, read as read
    from forecast_rank.numeric_forecasts import numeric_scores as numeric_scores, rank_numeric as rank_numeric
    from forecast_rank.partial import Partial as Partial
    from forecast_rank.score_ranking import rank_scores as rank_scores
    from forecast_rank.reports import Report as Report
    from forecast_rank.array_scores import (
        mean_brier as mean_brier, mean_log_score as mean_log_score, mean_spherical as mean_spherical
    )
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
        ece_debiased as ece_debiased, ece_draws as ece_draws, unbiased_ece as unbiased_ece,
        unbiased_ece_at_levels as unbiased_ece_at_levels
    )
    from forecast_rank.metrics.anytime_valid import (
        anytime_p as anytime_p, confidence_sequence as confidence_sequence, e_process as e_process
    )
    from forecast_rank.metrics.cluster_means import (
        cluster_means as cluster_means, observed_means as observed_means, paired_by_cluster as paired_by_cluster,
        rank_ranges_of_tests as rank_ranges_of_tests
    )
    from forecast_rank.metrics.corp import corp_curve as corp_curve, corp_decomposition as corp_decomposition
    from forecast_rank.metrics.difficulty_adjustment import adjusted_brier as adjusted_brier
    from forecast_rank.metrics.discrimination import auc as auc
    from forecast_rank.metrics.daily_brier import daily_brier as daily_brier
    from forecast_rank.metrics.murphy_diagram import murphy_diagram as murphy_diagram
    from forecast_rank.metrics.diebold_mariano import diebold_mariano as diebold_mariano
    from forecast_rank.metrics.pit import (
        pit_cdf as pit_cdf, pit_histogram as pit_histogram,
        pit_quantiles as pit_quantiles
    )
    from forecast_rank.metrics.irt import (
        discrimination_weights as discrimination_weights, fit_irt as fit_irt, weighted_brier as weighted_brier
    )
    from forecast_rank.metrics.kelly_growth import (
        expected_growth as expected_growth, realised_growth as realised_growth
    )
    from forecast_rank.metrics.metaculus_scores import (
        baseline_score as baseline_score, peer_score as peer_score, time_weighted_scores as time_weighted_scores
    )
    from forecast_rank.metrics.numeric_scores import (
        crps_cdf as crps_cdf, crps_quantiles as crps_quantiles, crps_samples as crps_samples,
        interval_score as interval_score, quantile_score as quantile_score
    )
    from forecast_rank.metrics.paired_tests import (
        benjamini_hochberg as benjamini_hochberg, corrected_margins as corrected_margins, holm as holm,
        paired_tests as paired_tests, questions_needed as questions_needed
    )
    from forecast_rank.metrics.panel import (
        Panel as Panel, Questions as Questions, from_arrays as from_arrays, references as references
    )
    from forecast_rank.metrics.proper_scores import (
        accuracy as accuracy, brier as brier, brier_sum as brier_sum, by_category as by_category,
        infinite_losses as infinite_losses, log_score as log_score, settled as settled, spherical as spherical
    )
    from forecast_rank.metrics.ranked_probability import ranked_probability as ranked_probability
    from forecast_rank.metrics.ratings import elo as elo, rating_history as rating_history
    from forecast_rank.metrics.recalibration import recalibration_line as recalibration_line
    from forecast_rank.metrics.returns import (
        average_return as average_return, cash_stakes as cash_stakes, certainty_equivalent as certainty_equivalent,
        log_wealth as log_wealth, return_stream as return_stream, ruins as ruins, sharpe as sharpe, stakes as stakes
    )
    from forecast_rank.metrics.skill import (
        alpha as alpha, alpha_mean as alpha_mean, brier_skill as brier_skill,
        brier_skill_against as brier_skill_against, market_brier as market_brier,
        market_probability as market_probability, overround as overround, uniform_brier as uniform_brier
    )
    from forecast_rank.metrics.resampled_ranks import probability_best as probability_best, rank_range as rank_range
    from forecast_rank.metrics.sample_mean import (
        bounded_cluster_interval as bounded_cluster_interval, clopper_pearson as clopper_pearson,
        cluster_interval as cluster_interval, clustered_share_intervals as clustered_share_intervals,
        t_interval as t_interval
    )
    from forecast_rank.metrics.score_trend import ScoreTrend as ScoreTrend, score_trend as score_trend
    from forecast_rank.metrics.running_intervals import running_intervals as running_intervals
    from forecast_rank.metrics.sequential_leaderboard import sequential_leaderboard as sequential_leaderboard
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
        InvalidRow as InvalidRow, LoadedForecasts as LoadedForecasts, RejectedLine as RejectedLine,
        TooFewForecasts as TooFewForecasts, read_rows as read_rows, usable_rows as usable_rows
    )
    from forecast_rank.ranking.report import rank_panel as rank_panel
    from forecast_rank.ranking.json_values import to_json_value as to_json_value
    from forecast_rank.simulated_worlds import (
        WORLDS as WORLDS, Simulation as Simulation, World as World, simulate as simulate
    )
    from forecast_rank.ranking.settings import (
        METRICS as METRICS, InvalidSetting as InvalidSetting, Settings as Settings
    )
    from forecast_rank.files.faults import UnreadableFile as UnreadableFile
# isort: on
# fmt: on

_MODULES = {
    "api": ("compare", "rank", "read"),
    "numeric_forecasts": ("numeric_scores", "rank_numeric"),
    "partial": ("Partial",),
    "score_ranking": ("rank_scores",),
    "reports": ("Report",),
    "array_scores": ("mean_brier", "mean_log_score", "mean_spherical"),
    "ranking.forecasts": (
        "InvalidRow", "LoadedForecasts", "RejectedLine", "TooFewForecasts", "read_rows", "usable_rows",
    ),
    "ranking.report": ("rank_panel",),
    "ranking.json_values": ("to_json_value",),
    "simulated_worlds": ("WORLDS", "Simulation", "World", "simulate"),
    "ranking.settings": ("METRICS", "InvalidSetting", "Settings"),
    "files.faults": ("UnreadableFile",),
    "metrics.anytime_valid": ("anytime_p", "confidence_sequence", "e_process"),
    "metrics.cluster_means": ("cluster_means", "observed_means", "paired_by_cluster", "rank_ranges_of_tests"),
    "metrics.corp": ("corp_curve", "corp_decomposition"),
    "metrics.kelly_growth": ("expected_growth", "realised_growth"),
    "metrics.metaculus_scores": ("baseline_score", "peer_score", "time_weighted_scores"),
    "metrics.numeric_scores": ("crps_cdf", "crps_quantiles", "crps_samples", "interval_score", "quantile_score"),
    "metrics.ranked_probability": ("ranked_probability",),
    "metrics.ratings": ("elo", "rating_history"),
    "metrics.running_intervals": ("running_intervals",),
    "metrics.score_trend": ("ScoreTrend", "score_trend"),
    "metrics.sequential_leaderboard": ("sequential_leaderboard",),
    "metrics.agreement": ("agreement", "kendall", "spearman"),
    "metrics.bradley_terry": ("exponential_form", "pairwise_ability", "pool_weights"),
    "metrics.brier": ("brier_score", "skill_score"),
    "metrics.calibration": (
        "ece", "ece_noise_floor", "max_calibration_error", "murphy_decomposition", "reliability_curve", "sharpness",
    ),
    "metrics.calibration_error": ("ece_debiased", "ece_draws", "unbiased_ece", "unbiased_ece_at_levels"),
    "metrics.recalibration": ("recalibration_line",),
    "metrics.difficulty_adjustment": ("adjusted_brier",),
    "metrics.discrimination": ("auc",),
    "metrics.daily_brier": ("daily_brier",),
    "metrics.murphy_diagram": ("murphy_diagram",),
    "metrics.diebold_mariano": ("diebold_mariano",),
    "metrics.pit": ("pit_cdf", "pit_histogram", "pit_quantiles"),
    "metrics.irt": ("discrimination_weights", "fit_irt", "weighted_brier"),
    "metrics.paired_tests": ("benjamini_hochberg", "corrected_margins", "holm", "paired_tests", "questions_needed"),
    "metrics.panel": ("Panel", "Questions", "from_arrays", "references"),
    "metrics.proper_scores": (
        "accuracy", "brier", "brier_sum", "by_category", "infinite_losses", "log_score", "settled", "spherical",
    ),
    "metrics.returns": (
        "average_return", "cash_stakes", "certainty_equivalent", "log_wealth", "return_stream", "ruins", "sharpe",
        "stakes",
    ),
    "metrics.skill": (
        "alpha", "alpha_mean", "brier_skill", "brier_skill_against", "market_brier", "market_probability", "overround",
        "uniform_brier",
    ),
    "metrics.resampled_ranks": ("probability_best", "rank_range"),
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
