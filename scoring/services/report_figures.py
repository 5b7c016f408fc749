"""The figures of reports on time, costs, releases, risk and consistency, one a row, as archives hold them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

Figure = dict[str, Any]
OF_TIME = ("n", "brier", "alpha", "adjusted_brier")
OF_REVISIONS = ("n", "revision", "price_move", "difference", "same_direction")
OF_COSTS = ("n", "score", "cost_usd", "search_cost_usd", "seconds", "tokens_input", "tokens_output")
OF_RELEASES = ("n", "brier", "difference")
OF_CONSISTENCY = ("forecasts", "days", "events", "profit")
OF_CHECKS = ("checks", "violations", "profit")
OF_RISK = (
    "weeks", "worst_drawdown", "weekly_volatility", "sharpe", "return_on_locked_capital", "first_share",
    "resolved_stakes", "held_profit", "odds_bettor_share", "luckiest_bettor_share",
)  # fmt: skip


def forecast_figures(arm: str, parts: Mapping[str, Any]) -> Iterator[Figure]:
    """The figures of the parts of a forecast leaderboard's report."""
    time, costs, releases, consistency = (parts[name] for name in ("time", "costs", "releases", "consistency"))
    for scores in time["bins"]:
        for row in scores["entries"]:
            yield from _figures("time", arm, row["forecaster"], str(scores["days_from"]), row, OF_TIME)
    for row in time["early"]["entries"] if time["early"] else ():
        yield from _figures("time", arm, row["forecaster"], "early", row, OF_TIME)
    for row in time["revisions"]:
        yield from _figures("time", arm, row["forecaster"], "revisions", row, OF_REVISIONS)
    for row in costs["rows"]:
        yield from _figures("costs", arm, row["forecaster"], "", row, OF_COSTS)
    if costs["rows"]:
        yield from _figures("costs", arm, "market", "", {"score": costs["market"]}, ("score",))
    for row in releases["rows"]:
        yield from _figures("releases", arm, row["family"], str(row["release"]), row, OF_RELEASES)
    for column, trend in releases["trends"].items():
        if trend is not None:
            days = {"parity": _day_number(trend["parity"]), "parity_ci": _day_numbers(trend["parity_ci"] or ())}
            yield from _figures("releases", arm, "", column, trend | days, ("slope", "parity"))
    for row in consistency["rows"]:
        yield from _figures("consistency", arm, row["family"], "", row, OF_CONSISTENCY)
        for kind, checks in row["checks"].items():
            yield from _figures("consistency", arm, row["family"], kind, checks, OF_CHECKS)
    if (spearman := consistency["spearman"]) is not None:
        relation = {"spearman": spearman["value"], "spearman_ci": spearman["interval"]}
        yield from _figures("consistency", arm, "", "", relation, ("spearman",))


def risk_figures(risk: Mapping[str, Any]) -> Iterator[Figure]:
    """The figures of luck and risk of families."""
    for family, row in risk["families"].items():
        yield from _figures("risk", "", family, "", row, OF_RISK)


def _figures(
    report: str, arm: str, forecaster: str, part: str, row: Mapping[str, Any], names: Sequence[str]
) -> Iterator[Figure]:
    """The named figures of a row that are known, with the ends of their intervals."""
    key = {"report": report, "arm": arm, "forecaster": forecaster, "part": part}
    for name in names:
        if row[name] is not None:
            low, high = row.get(f"{name}_ci") or (None, None)
            yield {**key, "figure": name, "value": float(row[name]), "low": low, "high": high}


def _day_number(day: str | None) -> int | None:
    return None if day is None else (date.fromisoformat(day) - date(1970, 1, 1)).days


def _day_numbers(days: Sequence[str]) -> list[int | None]:
    return [_day_number(day) for day in days]
