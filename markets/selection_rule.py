"""The rule by which a day's questions are selected. Imported on use, for pydantic's sake."""

from decimal import Decimal
from typing import Self

from pydantic import BaseModel, ConfigDict, Field


class SelectionRule(BaseModel):
    """Which questions a day gets; part of a methodology's forecast rules."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    arms: tuple[str, ...]
    questions_per_day: int = Field(gt=0)
    questions_per_call: int = Field(gt=0)
    most_options: int = Field(ge=2)
    minimum_volume: Decimal
    soonest_days: int
    latest_days: int
    category_share: Decimal = Field(gt=0, le=1)

    def with_at_most(self, questions: int) -> Self:
        return self.model_copy(update={"questions_per_day": min(questions, self.questions_per_day)})

    @property
    def category_limit(self) -> int:
        return max(1, int(self.questions_per_day * self.category_share))
