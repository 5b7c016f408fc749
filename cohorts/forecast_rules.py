"""Rules of the forecast protocol, as a field of a methodology version. Imported on use, for pydantic's sake."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from markets.question_selection import SelectionRule


class ForecastRules(BaseModel):
    """How questions are selected and asked. Raises pydantic's ValidationError for missing or unknown fields."""

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
    def from_json(cls, values: Mapping[str, Any]) -> ForecastRules:
        return cls.model_validate(values)

    @property
    def retry_window(self) -> timedelta:
        return timedelta(hours=self.retry_window_hours)

    def selection_rule(self, questions: int | None = None) -> SelectionRule:
        """The rule that selects a day's questions, at most `questions` of them."""
        limit = min(questions or self.questions_per_day, self.questions_per_day)
        return SelectionRule(
            questions=limit,
            per_batch=self.questions_per_call,
            max_options=self.most_options,
            min_volume=self.minimum_volume,
            soonest=timedelta(days=self.soonest_days),
            latest=timedelta(days=self.latest_days),
            category_limit=max(1, int(limit * self.category_share)),
            arms=self.arms,
        )
