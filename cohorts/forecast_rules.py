"""Rules of the two protocols, as fields of a methodology version. Imported on use, for pydantic's sake."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from cohorts.weeks import LONGEST_OPEN_WINDOW, OPEN_WINDOW_HOURS
from markets.prompt_blocks import MARKET_COLUMNS
from markets.selection_rule import Condition, Rule, SelectionRule


class TradingRules(Rule):
    """Rules of the trading protocol that came after v2.

    bet_reasons : each bet of an answer has its own reason
    replicates : always 1; a part of published texts, whose hashes stand
    """

    market_columns: tuple[str, ...] = MARKET_COLUMNS
    rules_characters: int | None = Field(default=None, ge=100)
    bet_reasons: bool = False
    replicates: Literal[1] = 1


class ForecastRules(SelectionRule):
    """How questions are selected and asked. Raises pydantic's ValidationError for missing or unknown fields.

    rationale_first : a model is asked for the rationale before the probabilities
    evidence_prompt, search_prompt : the parts of the user prompt in conditions with evidence, with search
    """

    sum_tolerance: float
    retry_window_hours: int
    open_window_hours: int = Field(default=OPEN_WINDOW_HOURS, gt=0, le=LONGEST_OPEN_WINDOW // timedelta(hours=1))
    choice_rule: str
    rationale_first: bool = False
    system_prompt: str
    user_prompt: str
    evidence_prompt: str = ""
    search_prompt: str = ""
    malformed_note: str
    refused_note: str

    @property
    def retry_window(self) -> timedelta:
        return timedelta(hours=self.retry_window_hours)

    def user_message(self, condition: Condition, *, date: str, questions: str, evidence: str) -> str:
        """The user message of a condition with these blocks of questions and evidence."""
        evidence = self.evidence_prompt.format(evidence=evidence) if condition.has_evidence else ""
        search = self.search_prompt if condition.tools else ""
        return self.user_prompt.format(date=date, questions=questions, evidence=evidence, search=search)
