"""The rules of the forecast protocol, as a methodology version freezes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from markets.choice import ChoiceRule

PRICED, BLIND = "priced", "blind"
"""The arms: the same questions with the market's prices, and without, so that echoing can be told from knowing."""


class ForecastRules(BaseModel):
    """How questions are chosen and asked. Raises pydantic's ValidationError for a record that is not whole."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    arms: tuple[str, ...]
    questions_per_day: int = Field(gt=0)
    questions_per_call: int = Field(gt=0)
    most_options: int = Field(ge=2)
    minimum_volume: Decimal
    soonest_days: int
    latest_days: int
    category_share: Decimal = Field(gt=0, le=1)
    sum_tolerance: float
    retry_window_hours: int
    choice_rule: str
    system_prompt: str
    user_prompt: str
    malformed_note: str
    refused_note: str

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> ForecastRules:
        return cls.model_validate(said)

    @property
    def retry_window(self) -> timedelta:
        return timedelta(hours=self.retry_window_hours)

    def choice(self, questions: int | None = None) -> ChoiceRule:
        """The rule that chooses a day's questions, `questions` of them at most."""
        most = min(questions or self.questions_per_day, self.questions_per_day)
        return ChoiceRule(
            questions=most,
            per_sheet=self.questions_per_call,
            most_options=self.most_options,
            minimum_volume=self.minimum_volume,
            soonest=timedelta(days=self.soonest_days),
            latest=timedelta(days=self.latest_days),
            category_limit=max(1, int(most * self.category_share)),
            arms=self.arms,
        )
