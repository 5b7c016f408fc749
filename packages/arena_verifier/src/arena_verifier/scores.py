"""Prices, the outcomes of questions, and the scores of bets and forecasts."""

import math
from itertools import groupby
from statistics import fmean
from typing import Any, NamedTuple

from arena_verifier.rows import Row, Tables, Violations

LOG_CLIP, TIE = 1e-6, 1e-12
PRICED_BY = {"midpoint": "midpoint", "gamma": "gamma", "trade": "gamma"}
"""The column that an accepted price of each source is taken from."""


def check_bet_scores(tables: Tables, violations: Violations) -> None:
    """Each purchase on a market with a winner has its Brier score, and no other trade has one."""
    trades, markets, scored = tables.by("trades"), tables.by("markets"), set()
    for row in tables.rows("brier_scores"):
        pk = row["trade"]
        if pk in scored:
            violations.note("brier_scores", row, "is there twice")
        scored.add(pk)
        trade, market = trades.get(pk), markets[row["market"]]
        if trade is None:
            if not tables.is_window:
                violations.note("brier_scores", row, "is there, and the trade is not in the archive")
            continue
        if market["status"] != "resolved" or trade["kind"] != "BUY" or trade["market"] != row["market"]:
            words = f"is of a {trade['kind']} on market {trade['market']}; market {market['id']} is {market['status']}"
            violations.note("brier_scores", row, words)
            continue
        won, price = trade["outcome"] == market["winning_outcome"], float(trade["price"])
        confidence = trade["implied_confidence"]
        figures = {
            "agent": trade["agent"], "probability": confidence, "outcome": won, "score": (confidence - won) ** 2,
            "market_probability": price, "market_score": (price - won) ** 2, "resolved_at": market["resolved_at"],
        }  # fmt: skip
        violations.differ("brier_scores", row, figures)
    if tables.is_window:
        return
    for pk, trade in trades.items():
        if trade["kind"] == "BUY" and markets[trade["market"]]["status"] == "resolved" and pk not in scored:
            violations.append(f"brier_scores: trade {pk} has none, although its market is resolved")


def check_prices(tables: Tables, violations: Violations) -> None:
    """Accepted prices are those of their source, NO's numbers one less YES's, and an outcome's price is its last."""
    outcomes, markets, last = tables.by("outcomes"), tables.by("markets"), {}
    for (market, _), observed in groupby(tables.rows("prices"), key=lambda row: (row["market"], row["observed_at"])):
        rows = list(observed)
        for row in rows:
            outcome = outcomes.get(row["outcome"])
            if outcome is None:
                if tables.is_whole:
                    violations.note("prices", row, "is there, and the outcome is not")
                continue
            violations.differ("prices", row, {"market": outcome["market"], "side": outcome["side"]})
            column = PRICED_BY.get(row["source"])
            if column and row["price"] != row[column]:
                violations.append(f"prices: of outcome {row['outcome']}: the price {row['price']} is not its {column}")
            if row["source"] == "midpoint" and not is_inside(row):
                violations.append(
                    f"prices: of outcome {row['outcome']}: the midpoint {row['price']} is outside its book"
                )
            last[row["outcome"]] = row
        sides = {row["side"]: row for row in rows}
        if len(rows) == 2 and sides.keys() == {"YES", "NO"} and markets.get(market, {}).get("kind") == "binary":
            check_sides(sides["YES"], sides["NO"], violations)
    if tables.is_whole:
        for pk, outcome in outcomes.items():
            row = last.get(pk, {"price": None, "source": "", "stale": False})
            figures = {"price": row["price"], "price_source": row["source"], "price_stale": row["stale"]}
            violations.differ("outcomes", outcome, figures)


def is_inside(row: Row) -> bool:
    """Whether a midpoint lies within the book beside it; a side that is empty or unknown bounds nothing."""
    bid, ask = row["bid"], row["ask"]
    return (bid is None or bid <= row["price"]) and (ask is None or row["price"] <= ask)


def check_sides(yes: Row, no: Row, violations: Violations) -> None:
    figures = {}
    for name, opposite in (("midpoint", "midpoint"), ("gamma", "gamma"), ("bid", "ask"), ("ask", "bid")):
        figures[name] = None if yes[opposite] is None else 1 - yes[opposite]
    violations.differ("prices", no, figures)


class Scores(NamedTuple):
    """The scores of the probabilities of a question's options."""

    brier: float
    log: float
    spherical: float
    accuracy: float


def score(vector: list[float], happened: list[bool], exclusive: bool) -> Scores:
    """The scores of probabilities of options, by whether each option happened."""
    squares = [(p - y) ** 2 for p, y in zip(vector, happened, strict=True)]
    if exclusive:
        return Scores(fmean(squares), *scores_of_exclusive(vector, happened))
    logs, sphericals, hits = [], [], []
    for p, y in zip(vector, happened, strict=True):
        right = p if y else 1 - p
        logs.append(math.log(max(right, LOG_CLIP)))
        sphericals.append(right / math.hypot(p, 1 - p))
        hits.append(0.5 if abs(p - 0.5) <= TIE else float((p > 0.5) == bool(y)))
    return Scores(fmean(squares), fmean(logs), fmean(sphericals), fmean(hits))


def scores_of_exclusive(vector: list[float], happened: list[bool]) -> tuple[float, float, float]:
    """The logarithmic and spherical score and the accuracy where exactly one option can happen."""
    paid, top, length = 0.0, [], math.hypot(*vector)
    for p, y in zip(vector, happened, strict=True):
        paid += p if y else 0.0
        if p >= max(vector) - TIE:
            top.append(y)
    return math.log(max(paid, LOG_CLIP)), paid / length if length else 0.0, fmean(top)


def check_outcomes(tables: Tables, violations: Violations) -> None:
    """The outcome of each resolved question is that of its markets; no other question has one."""
    outcomes, markets = tables.by("outcomes"), tables.by("markets")
    options = tables.grouped("question_options", "question")
    for pk, question in tables.by("questions").items():
        listed = options.pop(pk, [])
        happened = {option["index"]: option["happened"] for option in listed}
        if sorted(happened) != [*range(len(listed))]:
            violations.append(f"question_options: those of question {pk} are not numbered from 0")
        figures: dict[int, Any] | None = dict.fromkeys(happened)
        if question["status"] == "resolved":
            figures = happened_options(listed, question["exclusive"], outcomes, markets)
        if happened != figures:
            violations.note("question_options", question, "is not that of its markets")
        if (question["resolved_at"] is not None) != (question["status"] in ("resolved", "cancelled")):
            violations.note("questions", question, f"is {question['status']}, resolved at {question['resolved_at']}")
    violations.extend(f"question_options: of question {pk}, which is not in the archive" for pk in options)
    for market in markets.values():
        final = market["status"] in ("resolved", "cancelled")
        won = (market["winning_outcome"] is not None) == (market["status"] == "resolved")
        if not won or (market["resolved_at"] is not None) != final:
            violations.note("markets", market, f"is {market['status']}, resolved at {market['resolved_at']}")


def happened_options(
    options: list[Row], exclusive: bool, outcomes: dict[Any, Row], markets: dict[Any, Row]
) -> dict[int, Any] | None:
    """Whether each option happened, by index; None for an independent one whose market was cancelled."""
    won, statuses = {}, {}
    for option in options:
        index, outcome = option["index"], option["outcome"]
        market = None if outcome is None else markets[outcomes[outcome]["market"]]
        won[index] = market is not None and market["winning_outcome"] == outcome
        if market is not None:
            statuses[index] = market["status"]
    if not exclusive:
        decided = "resolved" in statuses.values() and set(statuses.values()) <= {"resolved", "cancelled"}
        void = [index for index, status in statuses.items() if status == "cancelled"]
        return won | dict.fromkeys(void) if decided else None
    if sum(won.values()) == 1:
        return won
    nobody_won = not any(won.values()) and set(statuses.values()) <= {"resolved"}
    return {index: index not in statuses for index in won} if nobody_won and len(statuses) < len(won) else None


class QuestionRecords:
    """Questions on the days that they were asked: their options, what happened, and the market's probabilities.

    An option without an outcome, whose market was cancelled, is not scored; the question's other options are.
    """

    def __init__(self, tables: Tables) -> None:
        self.questions, self.entries = tables.by("questions"), tables.by("question_entries")
        self.options: dict[int, list[Row]] = {}
        for pk, options in tables.grouped("question_options", "question").items():
            options.sort(key=lambda option: option["index"])
            self.options[pk] = [option for option in options if option["happened"] is not None] or options

    def names(self, question: Row) -> list[str]:
        return [option["name"] for option in self.options[question["id"]]]

    def vector(self, forecast: Row, question: Row) -> list[float]:
        return [forecast["probabilities"][name] for name in self.names(question)]

    def market(self, entry: Row) -> list[float] | None:
        """Mid prices, divided by their sum where options are exclusive; None where one is missing."""
        question = self.questions[entry["question"]]
        quotes: list[Any] = [(entry["prices"].get(name) or {}).get("price") for name in self.names(question)]
        if any(quote is None for quote in quotes):
            return None
        prices = [float(quote) for quote in quotes]
        total = math.fsum(prices)
        if not question["exclusive"]:
            return prices
        return [price / total for price in prices] if total > 0 else None

    def score(self, vector: list[float], entry: Row) -> Scores:
        question = self.questions[entry["question"]]
        happened = [bool(option["happened"]) for option in self.options[question["id"]]]
        return score(vector, happened, question["exclusive"])


def check_forecast_scores(tables: Tables, violations: Violations) -> None:
    """Each forecast on a resolved question has the scores of its probabilities, and no other has any."""
    records, scores = QuestionRecords(tables), tables.by("forecast_scores", "forecast")
    for pk, forecast in tables.by("forecasts").items():
        check_origin(tables, forecast, violations)
        question, entry = records.questions[forecast["question"]], records.entries[forecast["entry"]]
        resolved, row = question["status"] == "resolved", scores.get(pk)
        if resolved != (row is not None) and not tables.is_window:
            words = f"has {'none' if resolved else 'one'}, against its question's status"
            violations.append(f"forecast_scores: forecast {pk} {words}")
        if row is None:
            continue
        figures: Row = records.score(records.vector(forecast, question), entry)._asdict()
        market = records.market(entry)
        figures["market_brier"] = None if market is None else records.score(market, entry).brier
        figures["resolved_at"] = question["resolved_at"]
        violations.differ("forecast_scores", row, figures)
    missing = scores.keys() - tables.by("forecasts").keys()
    violations.extend(f"forecast_scores: of forecast {pk}, which is not in the archive" for pk in missing)


def check_origin(tables: Tables, forecast: Row, violations: Violations) -> None:
    """A forecast agrees with its elicitation, and with the question of its entry."""
    task = tables.by("elicitations").get(forecast["elicitation"])
    if task is None:
        return
    figures = {name: task[name] for name in ("family", "release", "methodology", "made_at")}
    figures["arm"] = tables.by("question_batches")[task["batch"]]["arm"]
    if not figures.items() <= forecast.items():
        words = "names another family, release, arm, methodology or time than what it belongs to"
        violations.note("forecasts", forecast, words)
    if tables.by("question_entries")[forecast["entry"]]["question"] != forecast["question"]:
        violations.note("forecasts", forecast, "is on another question than its entry")
