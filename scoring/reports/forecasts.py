"""The reports of the forecast protocol."""

from scoring.constants import RANKED_BY
from scoring.reports.columns import Column

SKILL = Column(
    "skill_percent",
    "skill",
    "100 × (1 − Brier / Brier of equal probabilities on the same questions): 0 is uniform, 100 is perfect.",
)
FORECAST_COLUMNS = (
    Column("forecaster", "text", "A family's slug, or the name of a reference.", null=False),
    Column("family", "text", "The family's slug; null for a reference."),
    Column("display_name", "text", "Its name on pages.", null=False),
    Column(
        "reference", "boolean", "market, uniform, ensemble, or one of two more ways to combine families.", null=False
    ),
    Column("external", "boolean", "An external agent, which submits by itself and is ranked apart.", null=False),
    Column(
        "rank",
        "integer",
        "By the score of `ranked_by` among the families; a reference's is the place it would take, an external has "
        "none.",
    ),
    Column("rank_low", "integer", "Best rank within the 95 % range."),
    Column("rank_high", "integer", "Worst rank within the 95 % range."),
    Column(
        "ranked_by",
        "choice",
        "adjusted_brier where the families answered different questions, else brier.",
        null=False,
        choices=RANKED_BY,
    ),
    Column("n", "integer", "Resolved questions answered; one asked on several days counts once.", null=False),
    Column("forecasts", "integer", "Forecasts scored on them.", null=False),
    Column("coverage", "number", "Answered share of the questions that were asked and resolved, each counted once."),
    Column("brier", "number", "Brier score, lower is better: a mean over options, so that long questions score lower."),
    Column("brier_se", "number", "Standard error of the Brier score."),
    Column("brier_ci", "interval", "Bootstrap interval of the Brier score over events, 95 %."),
    Column("log", "number", "Mean natural logarithm of the probability of what happened, clipped at 1e-6."),
    Column("spherical", "number", "Mean spherical score; higher is better."),
    Column("accuracy", "number", "Share of questions whose likeliest option happened."),
    Column("average_return", "numbers", "Gross return per dollar staked at the asks. By risk aversion."),
    Column("average_return_ci", "intervals", "Bootstrap interval of the average return, 95 %. By risk aversion."),
    Column(
        "log_wealth", "numbers", "Log wealth of stakes that may keep cash; null where one was ruined. By risk aversion."
    ),
    Column("ruins", "integers", "Forecasts by which everything was lost. By risk aversion."),
    Column("alpha", "number", "The market's Brier score less the forecaster's, on the same questions."),
    Column("alpha_se", "number", "Standard error of `alpha`."),
    Column("alpha_ci", "interval", "Bootstrap interval of `alpha` over events, 95 %."),
    Column("bss_uniform", "number", "1 − Brier / Brier of equal probabilities; `skill_percent` is 100 times this."),
    SKILL,
    Column("bss_market", "number", "1 − Brier / Brier of the market's prices."),
    Column("ece", "number", "Expected calibration error over ten bins."),
    Column("ece_noise_floor", "number", "Calibration error that chance alone gives a calibrated forecaster."),
    Column("weighted_brier", "number", "Brier score weighted by the questions' discrimination."),
    Column("weighted_brier_ci", "interval", "95 % interval of the weighted score."),
    Column("adjusted_brier", "number", "Brier score as if everybody had answered every question."),
    Column("adjusted_brier_se", "number", "Standard error of the adjusted Brier score."),
    Column("adjusted_brier_ci", "interval", "95 % interval of the adjusted score."),
    Column("irt_ability", "number", "Ability by item response theory; higher is better."),
    Column("irt_se", "number", "Standard error of that ability."),
    Column("irt_ability_ci", "interval", "95 % interval of the ability."),
    Column("bt_ability", "number", "Ability by the Bradley-Terry model of pairwise comparisons; higher is better."),
    Column("bt_se", "number", "Standard error of that ability."),
    Column("bt_ability_ci", "interval", "95 % interval of the ability."),
    Column("pool_weight", "number", "Weight in the linear pool of the families that fits best."),
    Column("cost_usd", "dollars", "Cost of all its calls; null by category."),
    Column("asked", "integer", "Batches of questions put to it."),
    Column("declined", "integer", "Batches to which it gave no readable answer."),
    Column("refused", "integer", "Forecasts stated that broke the rules."),
)
"""A leaderboard of the forecast protocol."""

CONDITION_COLUMNS = (
    Column("family", "text", "The family's slug.", null=False),
    Column("condition_a", "text", "The name of the one condition.", null=False),
    Column("condition_b", "text", "The name of the other.", null=False),
    Column("n", "integer", "Common questions; one asked on several days counts once.", null=False),
    Column("forecasts", "integer", "Common forecasts, on the same question on the same day.", null=False),
    Column("events", "integer", "Events of these questions.", null=False),
    Column("difference", "number", "The Brier score under A less that under B: below 0 A is better.", null=False),
    Column("interval", "interval", "95 % interval of the difference, corrected as p_adjusted is."),
    Column("p", "number", "Two-sided p of no difference, events as clusters; null of fewer than two events."),
    Column("p_adjusted", "number", "p corrected by Holm for all rows."),
)
"""The differences of each model between two prompt conditions, on the questions that it answered under both."""
