"""Rules of the forecast protocol, as a field of a methodology version. Imported on use, for pydantic's sake."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from cohorts.models import LONGEST_OPEN_WINDOW, OPEN_WINDOW_HOURS
from markets.selection_rule import SelectionRule


class ForecastRules(SelectionRule):
    """How questions are selected and asked. Raises pydantic's ValidationError for missing or unknown fields."""

    sum_tolerance: float
    retry_window_hours: int
    open_window_hours: int = Field(default=OPEN_WINDOW_HOURS, gt=0, le=LONGEST_OPEN_WINDOW // timedelta(hours=1))
    choice_rule: str
    system_prompt: str
    user_prompt: str
    malformed_note: str
    refused_note: str

    @property
    def retry_window(self) -> timedelta:
        return timedelta(hours=self.retry_window_hours)
