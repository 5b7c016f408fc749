"""The terms that pages use, each defined once: for the glossary and for the definitions that pages open in place."""

from collections.abc import Mapping
from typing import NamedTuple

from django.http import HttpRequest


class Term(NamedTuple):
    """A term with its definition; `formula` is the anchor of its formula on the page of the methodology."""

    name: str
    definition: str
    formula: str = ""


SCORES: Mapping[str, Term] = {
    "brier-score": Term(
        "Brier score",
        "The mean squared difference between stated probabilities and what happened, over a question’s options and"
        " then over questions. 0 is perfect, lower is better, and stating one’s true beliefs is the best strategy.",
        "score-forecast_brier",
    ),
    "proper-score": Term(
        "Proper score",
        "A score that is best, on average, for a forecaster who states its true beliefs. The Brier, log and spherical"
        " scores are proper; the bet-sizing score and the weighted Brier score are not.",
    ),
    "log-score": Term(
        "Log score",
        "The mean natural logarithm of the probability that was given to what happened. 0 is perfect, higher is better,"
        " and confident errors cost most.",
        "score-forecast_log",
    ),
    "spherical-score": Term(
        "Spherical score",
        "The probability given to what happened, divided by the length of the vector of all stated probabilities."
        " A proper score between 0 and 1, higher is better.",
        "score-spherical",
    ),
    "top-choice-accuracy": Term(
        "Top-choice accuracy",
        "The share of questions on which the option with the highest stated probability happened. Options with the"
        " same probability share the hit.",
    ),
    "alpha": Term(
        "Alpha",
        "The market’s Brier score minus the forecaster’s, on the same questions. Above 0 the forecaster is better than"
        " the market’s prices.",
        "score-alpha",
    ),
    "share-of-market": Term(
        "Share of the market’s score",
        "1 minus the forecaster’s Brier score divided by that of the market’s prices. Above 0 the forecaster is better"
        " than the prices; 1 is perfect.",
    ),
    "skill-percent": Term(
        "Skill",
        "100 × (1 − Brier score / Brier score of equal probabilities on the same questions): 0 is no better than equal"
        " probabilities, 100 is perfect, below 0 is worse. The market’s own stands beside it.",
    ),
    "risk-free-profit": Term(
        "Risk-free profit",
        "What a portfolio gains whatever happens, if it buys and sells contracts at the probabilities that a model"
        " stated: 0 if these fit together. It is in dollars per question, with at most one contract of each option.",
    ),
    "knowledge-cut-off": Term(
        "Knowledge cut-off",
        "The day up to which a release was trained, by the gateway’s catalogue or as its maker declares it. A model may"
        " know some of what came later.",
    ),
    "average-return": Term(
        "Average return",
        "The mean profit or loss per $1, if $1 is staked on every question as the forecast suggests, at ask prices."
        " It ignores market depth.",
        "score-average_return",
    ),
    "risk-aversion": Term(
        "Risk aversion",
        "How widely stakes are spread when a forecast is turned into bets. At 0 all is staked on the option with the"
        " best odds by the forecast; at 1 the stakes equal the probabilities.",
        "score-average_return",
    ),
    "log-wealth": Term(
        "Log wealth",
        "The mean natural logarithm of what $1 becomes on a question, when part of it may be held as cash."
        " With stakes by Kelly’s rule it measures long-term growth; above 0 the wealth grows.",
    ),
    "calibration": Term(
        "Calibration",
        "The agreement of stated probabilities with observed frequencies: of all events forecast at 70 %, 70 % should"
        " happen.",
    ),
    "calibration-error": Term(
        "Calibration error (ECE)",
        "The expected calibration error: the gap between mean forecast and observed frequency, averaged over ten bins"
        " by their weight. Lower is better; some error arises by chance alone.",
        "score-ece",
    ),
    "noise-floor": Term(
        "Error expected by chance",
        "The calibration error that a perfectly calibrated forecaster would show on the same forecasts, because the"
        " number of questions is limited.",
    ),
    "reliability": Term(
        "Reliability",
        "The part of the Brier score that miscalibration causes: the squared gap between forecast and observed"
        " frequency. Lower is better.",
        "score-murphy",
    ),
    "resolution-component": Term(
        "Resolution",
        "The part of the Brier score that is gained by telling likely from unlikely events. Higher is better.",
        "score-murphy",
    ),
    "uncertainty-component": Term(
        "Uncertainty",
        "The part of the Brier score that depends on the questions alone: how hard they are for a forecaster who"
        " always states the overall frequency.",
        "score-murphy",
    ),
    "adjusted-brier": Term(
        "Adjusted Brier score",
        "An estimate of the Brier score as if every model had answered every question. It makes models comparable"
        " that answered different questions.",
        "score-adjusted_brier",
    ),
    "weighted-brier": Term(
        "Weighted Brier score",
        "The Brier score with more weight on questions that separate good from bad forecasters. Its weights depend"
        " on the other models, so it is not a proper score.",
    ),
    "irt-ability": Term(
        "Ability (item response theory)",
        "A model’s ability, estimated together with the difficulty and the discrimination of each question. The mean"
        " over the models is 0, higher is better.",
        "score-irt",
    ),
    "difficulty": Term(
        "Difficulty",
        "The ability at which a model is expected to score half on a question, by item response theory.",
        "score-irt",
    ),
    "discrimination": Term(
        "Discrimination",
        "How sharply a question separates able from less able models, by item response theory.",
        "score-irt",
    ),
    "bradley-terry": Term(
        "Bradley–Terry ability",
        "A rating from direct comparisons: on each common question the lower Brier score beats the higher one. Higher"
        " is better.",
        "score-bradley_terry",
    ),
    "pool-weight": Term(
        "Pool weight",
        "A model’s weight in the mixture of all models’ forecasts that would have scored best. A good model that adds"
        " nothing to the others has a weight near 0.",
    ),
    "bet-sizing-score": Term(
        "Bet-sizing score",
        "The Brier score’s formula applied to bets, with the implied confidence in place of a probability. A stake is"
        " a share of cash and no probability, so this is not a proper score.",
        "score-brier",
    ),
    "implied-confidence": Term(
        "Implied confidence",
        "The amount of a bet as a share of the largest legal bet at that moment, at most 100 %.",
        "score-implied_confidence",
    ),
    "win-rate": Term("Win rate", "The share of resolved bets whose side won.", "score-win_rate"),
    "return-after-costs": Term(
        "Return after costs",
        "The return if each trade had walked the order book captured at the freeze and paid the venue’s fee. What a"
        " book could not fill counts as not traded.",
    ),
    "odds-bettor": Term(
        "Bettor at the market’s odds",
        "A simulated bettor with a model’s resolved stakes, each of which wins as often as its price says. How often it"
        " makes as much as the model is how far luck alone goes.",
    ),
}  # fmt: skip
UNCERTAINTY: Mapping[str, Term] = {
    "interval": Term(
        "95 % interval",
        "The range of values that are compatible with the data at a confidence of 95 %. For scores it is made by"
        " resampling whole events; for returns over calendar weeks, since cohorts share weeks and markets.",
    ),
    "standard-error": Term(
        "Standard error",
        "The standard deviation of an estimate: about two thirds of such estimates lie within one standard error of"
        " the true value. A 95 % interval reaches about two of them to each side; ± on these pages is that interval.",
    ),
    "rank-range": Term(
        "Rank range",
        "The ranks that a model may truly have. The ranges of all models hold together at a confidence of 95 %.",
    ),
    "paired-test": Term(
        "Paired test",
        "A test of the difference between two models on the questions that both answered, in which forecasts of one"
        " event count as dependent; for returns on the cohorts that both played, in which changes of one calendar week"
        " do.",
    ),
    "corrected-p": Term(
        "Corrected p",
        "The probability of a difference at least this large if the two models were equal, corrected by Holm’s method"
        " for the number of pairs. Below 0.05 a difference is called significant.",
    ),
    "statistically-tied": Term(
        "Statistically tied",
        "Not significantly different: the corrected p of the paired test is 0.05 or more, or there is no test yet.",
    ),
    "power": Term(
        "Questions needed for 80 % power",
        "How many further resolved questions it takes to find a true difference of 0.01 in the Brier score with a"
        " probability of 80 %.",
    ),
    "rank-correlation": Term(
        "Rank correlation",
        "Spearman’s correlation of two rankings: +1 if both have the same order, 0 if they are unrelated, −1 if one is"
        " the reverse of the other.",
    ),
    "event": Term(
        "Event",
        "The real-world subject of one or more questions. Questions of one event resolve together, so statistics count"
        " and resample events and not single questions.",
    ),
}  # fmt: skip
FORECASTING: Mapping[str, Term] = {
    "question": Term(
        "Question",
        "A question of a prediction market with two or more options. Each model states a probability for every"
        " option.",
    ),
    "resolved": Term("Resolved", "The venue has declared the outcome, so that forecasts and bets can be scored."),
    "prompt-condition": Term(
        "Prompt condition",
        "The information that a forecast prompt shows, for instance with or without the market’s prices. Forecasts in"
        " different conditions are never mixed in one ranking.",
    ),
    "coverage": Term(
        "Coverage",
        "The share of the questions asked of a model for which it gave a valid forecast.",
    ),
    "baseline": Term(
        "Baseline",
        "A simple forecast to compare models with: the market’s prices, equal probabilities, or a combination of the"
        " models. Baselines are shown beside the ranking and are not ranked.",
    ),
    "market-baseline": Term(
        "Market",
        "The baseline that forecasts the market’s price at the moment when the models are asked.",
    ),
    "uniform-baseline": Term("Uniform", "The baseline that gives every option of a question the same probability."),
    "ensemble-baseline": Term(
        "Ensemble",
        "The baseline that forecasts the mean of the models’ stated probabilities; its variants take the median, or"
        " push the mean away from 50 % (extremised).",
    ),
    "overround": Term(
        "Overround",
        "How far the prices of a question’s options sum to more than 1, on average.",
    ),
    "declined": Term(
        "Declined and refused",
        "Declined: a batch of questions to which the model gave no readable answer. Refused: a forecast that broke the"
        " rules, for instance probabilities that do not sum to 1.",
    ),
}  # fmt: skip
PRICES: Mapping[str, Term] = {
    "price": Term(
        "Price",
        "What a share costs, as a percentage of the dollar that it pays if its side wins: the probability that the"
        " market implies. A price of 41.3 % is 0.413 dollars a share.",
    ),
    "midpoint": Term("Midpoint", "The middle between the best bid and the best ask of an order book."),
    "ask": Term("Ask", "The lowest price at which someone offers to sell a share of an option."),
    "universe": Term(
        "Universe",
        "The list of markets and prices that every agent of a week is shown and trades at. It is frozen once and never"
        " changed.",
    ),
    "freeze": Term("Freeze", "The instant at which the prices of a run are fixed for all models."),
    "snapshot": Term("Snapshot", "The value of a portfolio at an instant, taken every ten minutes."),
    "mark": Term(
        "Mark",
        "The accepted price at which an open position is valued: the order book’s midpoint if it is sound, else the"
        " market’s quoted price.",
    ),
    "stale-price": Term(
        "Stale price",
        "The last accepted price, shown because no newer price could be accepted.",
    ),
}  # fmt: skip
TRADING: Mapping[str, Term] = {
    "model-line": Term(
        "Model line",
        "A model’s lasting place on the leaderboards. The release behind it may change; its results are combined.",
    ),
    "release": Term("Release", "The exact model behind a model line at a time, as its provider names it."),
    "agent": Term("Agent", "One release of a model in one cohort, with a portfolio of its own."),
    "external-agent": Term(
        "External agent",
        "A program that submits its own answers. It could use later news than the models, so it has no rank among them;"
        " agents have a board of their own.",
    ),
    "track": Term(
        "Track",
        "What an external agent may use, declared when it registers and never changed: in the closed track only what"
        " the task shows, by its maker’s word; in the open track anything.",
    ),
    "cohort": Term("Cohort", "The agents that start in the same week with the same balance and the same rules."),
    "decision-week": Term(
        "Decision week",
        "A week in which the agents of a cohort are asked once to bet, sell or hold. After its last one a cohort only"
        " waits for its markets to resolve.",
    ),
    "fallback-hold": Term(
        "Fallback HOLD",
        "The decision that is recorded when a model declines, or when its answers stay unreadable after all retries:"
        " nothing is traded.",
    ),
    "missed": Term("Missed", "No answer arrived before the decision window closed, so nothing was decided."),
    "return": Term(
        "Return",
        "The profit or loss of a portfolio in percent of its starting balance; on leaderboards the mean over cohorts.",
        "score-return_percent",
    ),
    "profit-and-loss": Term(
        "P/L",
        "Profit or loss: realized on positions that were sold or settled, unrealized on open positions at their current"
        " price.",
    ),
    "overbetting": Term(
        "Overbetting",
        "The implied confidence of a bet minus the probability that the same model stated. It compares two"
        " scales: whether a stake fits the forecast is told by the stake that Kelly’s rule takes at the same price.",
    ),
    "edge": Term(
        "Edge",
        "A model’s own stated probability minus the ask price of the side that it bought. A positive edge means a bet"
        " that pays on average if its forecast is right.",
    ),
    "bankrupt": Term(
        "Bankrupt",
        "Too little cash for any legal bet and no open position. The agent is not asked again and stays on the"
        " leaderboard.",
    ),
    "paper-money": Term(
        "Paper money",
        "Bets are recorded at real prices without being placed, so they move no market and risk no money.",
    ),
}  # fmt: skip
RECORDS: Mapping[str, Term] = {
    "methodology": Term(
        "Methodology",
        "A numbered version of all rules, prompts and formulas. A version in use never changes; each change is a new"
        " version.",
    ),
    "hash-chain": Term(
        "Hash chain",
        "A list in which each record’s hash includes the one before it. Knowing the newest hash proves that no earlier"
        " record was changed.",
    ),
    "model-cost": Term(
        "Model cost",
        "The cost of a model’s API calls, including malformed and failed ones. Costs that the gateway does not"
        " report are tokens times price.",
    ),
}
GROUPS: Mapping[str, Mapping[str, Term]] = {
    "Scores": SCORES,
    "Uncertainty": UNCERTAINTY,
    "Forecasts": FORECASTING,
    "Prices": PRICES,
    "Trading": TRADING,
    "Records": RECORDS,
}
TERMS: Mapping[str, Term] = {slug: term for group in GROUPS.values() for slug, term in group.items()}


def terms_in_use(request: HttpRequest) -> dict[str, dict[str, Term]]:
    """Template context: the terms of the page, which the templates' function `term` adds while the page is rendered."""
    return {"terms_in_use": {}}
