"""The state of an arena's ledger by names instead of ids, to compare one run with another."""

from collections import Counter
from typing import Any


def ledger_state() -> dict[str, Any]:
    """Everything that must not depend on which process died when."""
    from agents.models import (
        Chain,
        ChainLink,
        Decision,
        Elicitation,
        Forecast,
        JournalEntry,
        Position,
        Settlement,
        Trade,
    )
    from markets.models import Market, QuestionOption, QuestionSet, UniverseEntry
    from scoring.exports.verification.ledger_audit import CHECKS, violations_about
    from scoring.models import BrierScore, ForecastScore, Leaderboard, Snapshot

    agent = ("agent__cohort__number", "agent__family__slug")
    side = ("market__external_id", "outcome__side")
    batch = ("batch__question_set__day", "batch__question_set__part", "batch__number", "batch__arm")
    board = Leaderboard.objects.get(protocol="trading", methodology="").entries
    return {
        "journal": _rows(JournalEntry, *agent, "sequence", "kind", "amount", "balance", "occurred_at"),
        "trades": _rows(
            Trade, *agent, "decision__week", "sequence", *side, "kind", "shares", "price", "amount", "cost_basis",
            "realized_pnl", "implied_confidence", "executed_at",
        ),
        "positions": _rows(
            Position, *agent, *side, "status", "shares", "cost_basis", "realized_pnl", "opened_at", "closed_at"
        ),
        "settlements": _rows(Settlement, *agent, "market__external_id", "kind", "payout", "realized_pnl", "settled_at"),
        "decisions": _rows(Decision, *agent, "week", "status", "action", "fallback", "refusals", "decided_at"),
        "snapshots": _rows(Snapshot, *agent, "taken_at", "cash", "total_value", "brier", "resolved_bets"),
        "scores": _rows(BrierScore, *agent, "market__external_id", "trade__sequence", "score", "outcome"),
        "markets": _rows(Market, "external_id", "status", "winning_outcome__side", "resolved_at", "closed_at"),
        # Not the hash, which covers our ids: on PostgreSQL a refused insertion uses one up.
        "universes": _rows(
            UniverseEntry, "universe__week_start", "universe__methodology", "universe__frozen_at", "position",
            "market__external_id", "bettable", "open", "prices", "sources",
        ),
        "board": [{key: entry[key] for key in entry if key != "cost_usd"} for entry in board],
        "question sets": _rows(QuestionSet, "day", "methodology", "part", "frozen_at", "sha256"),
        "questions": _rows(
            QuestionOption, "question__options_sha256", "question__status", "question__resolved_at", "name", "happened"
        ),
        "elicitations": _rows(Elicitation, *batch, "release__model_id", "status", "declined", "refusals", "made_at"),
        "forecasts": [
            (*row[:-1], sorted(row[-1].items()))
            for row in _rows(
                Forecast, *(f"elicitation__{name}" for name in batch), "release__model_id", "arm",
                "question__options_sha256", "made_at", "rationale", "probabilities",
            )
        ],
        "forecast scores": _rows(
            ForecastScore, "forecast__question__options_sha256", "forecast__family__slug", "forecast__arm",
            "forecast__made_at", "brier", "log",
        ),
        # Not the hashes: which link comes first, and the ids in prompts, may depend on who died.
        "chain": _rows(
            ChainLink,
            "protocol",
            *(f"decision__{name}" for name in (*agent, "week")),
            *(f"elicitation__{name}" for name in (*batch, "release__model_id")),
        ),
        "chain lengths": _rows(Chain, "protocol", "length"),
        "violations": [line for subject in CHECKS for line in violations_about(subject)],
        "answers bought twice": answers_bought_twice(),
    }  # fmt: skip


def answers_bought_twice() -> list[tuple[int | None, int | None, int]]:
    """Decision, elicitation and attempt of each answer that was stored and bought again all the same."""
    from agents.models import ModelCall

    judged = ModelCall.objects.filter(result__in=["answered", "malformed", "declined", "refused"], late=False)
    keys = Counter(judged.values_list("decision_id", "elicitation_id", "attempt"))
    return [key for key, count in keys.items() if count > 1]


def _rows(model: Any, *fields: str) -> list[tuple[Any, ...]]:
    return sorted(model.objects.values_list(*fields), key=repr)


def differences(expected: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    """The names of the tables whose rows differ."""
    return [name for name, rows in expected.items() if actual[name] != rows]
