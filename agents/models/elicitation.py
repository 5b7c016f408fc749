"""Elicitations: the tasks of the forecast protocol."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q

from agents.answer_schemas import forecast_schema
from agents.models.family import Family, Release
from agents.models.task import PromptParts, Task
from arena_verifier.forecasts import parse_cut_forecasts, parse_forecasts
from cohorts.models import Methodology
from cohorts.weeks import WEEK, week_start
from markets.models import QuestionBatch

if TYPE_CHECKING:
    from cohorts.forecast_rules import ForecastRules
    from markets.selection_rule import Condition, SearchTool


class Elicitation(Task):
    """One release's answer to one batch of questions; under a condition of several samples, one of them."""

    PROTOCOL = "forecast"

    batch = models.ForeignKey(
        QuestionBatch, on_delete=models.PROTECT, related_name="elicitations", help_text="The question batch."
    )
    methodology = models.ForeignKey(Methodology, on_delete=models.PROTECT, related_name="elicitations")  # type: ignore[assignment]
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="elicitations")
    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="elicitations")
    declined = models.BooleanField(
        default=False, help_text="True if the model refused, or its answers were empty or malformed to the last."
    )
    made_at = models.DateTimeField(null=True, blank=True, help_text="When the answer was recorded.")
    sample = models.PositiveSmallIntegerField(default=1, help_text="Its number among the samples, from 1.")
    samples = models.PositiveSmallIntegerField(default=1, help_text="How many samples are asked of the release.")

    class Meta(Task.Meta):
        constraints = [
            *Task.Meta.constraints,
            models.UniqueConstraint(fields=["batch", "release", "sample"], name="one_elicitation_per_sample"),
            models.CheckConstraint(
                condition=Q(status="completed", made_at__isnull=False)
                | (~Q(status="completed") & Q(made_at__isnull=True, declined=False)),
                name="only_a_completed_elicitation_has_a_time",
            ),
        ]
        indexes = [
            *Task.Meta.indexes,
            models.Index(fields=["family", "status"], name="elicitation_by_family"),
            models.Index(fields=["made_at", "id"], name="elicitation_by_time"),
        ]
        ordering = ["-batch_id", "release_id"]

    def __str__(self) -> str:
        sample = f", sample {self.sample}" if self.samples > 1 else ""
        return f"{self.release.display_name}, {self.batch}{sample}"

    @classmethod
    def in_week(cls, week_start: datetime) -> Q:
        return Q(batch__question_set__day__gte=week_start, batch__question_set__day__lt=week_start + WEEK)

    @property
    def seal_end(self) -> datetime | None:
        return self.batch.question_set.sealed_until

    @property
    def week_start(self) -> datetime:
        return week_start(self.batch.question_set.day)

    @property
    def rules(self) -> ForecastRules:
        rules = self.methodology.forecast_rules
        assert rules is not None
        return rules

    @property
    def condition(self) -> Condition:
        return self.rules.condition(self.batch.arm)

    @property
    def temperature(self) -> float:
        of_condition = self.condition.temperature
        return self.methodology.temperature if of_condition is None else of_condition

    @property
    def search_tool(self) -> SearchTool | None:
        return self.condition.tools

    @property
    def is_open_to_agents(self) -> bool:
        """Whether external agents are asked too: what the gateway's tool shows is part of no task."""
        return self.search_tool is None

    @property
    def answer_schema(self) -> dict[str, Any]:
        return forecast_schema(rationale_first=self.rules.rationale_first)

    @property
    def window_ends_at(self) -> datetime:
        """The end of the window in which a failed elicitation may be tried again."""
        return self.batch.question_set.frozen_at + self.family.answer_window(self.methodology, self.rules.retry_window)

    @property
    def stable_key(self) -> str:
        questions, batch = self.batch.question_set, self.batch
        day = questions.day.isoformat()
        return f"{day}:{questions.methodology}:{questions.part}:{batch.arm}:{batch.number}:{self.model_id}" + (
            f":{self.sample}" if self.sample > 1 else ""
        )

    @property
    def log_context(self) -> dict[str, int | str]:
        return {"family": self.family.slug, "elicitation": self.pk, "batch": self.batch_id, "arm": self.batch.arm}

    def user_prompt(self, parts: PromptParts) -> str:
        date, questions = self.batch.question_set.day.date().isoformat(), parts.questions_block or self.batch.block
        evidence = self.batch.evidence_block
        message = self.rules.user_message(self.condition, date=date, questions=questions, evidence=evidence)
        return message + parts.retry_note

    def parse(self, content: str) -> Any:
        return [forecast.as_json() for forecast in parse_forecasts(content)]

    def parse_cut(self, content: str) -> Any:
        return [forecast.as_json() for forecast in parse_cut_forecasts(content)] or None
