"""What a model was asked to forecast, and the probabilities it stated: the forecast protocol's task."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q

from agents.forecast_answers import Asked, read_forecasts
from agents.models.agent import Family, Release
from agents.models.task import Retries, Task
from cohorts.forecasting import ForecastRules
from cohorts.models import Methodology
from cohorts.weeks import WEEK, week_start
from markets.models import Question, QuestionEntry, QuestionSheet

if TYPE_CHECKING:
    from agents.models.call import ModelCall


class Elicitation(Task):
    """One sheet of questions put to one release: what a decision is to the trading protocol."""

    PROTOCOL = "forecast"

    sheet = models.ForeignKey(QuestionSheet, on_delete=models.PROTECT, related_name="elicitations")
    methodology = models.ForeignKey(Methodology, on_delete=models.PROTECT, related_name="elicitations")  # type: ignore[assignment]
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="elicitations")
    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="elicitations")
    declined = models.BooleanField(default=False, help_text="The model refused, said nothing, or nothing readable.")
    made_at = models.DateTimeField(null=True, blank=True)

    class Meta(Task.Meta):
        constraints = [
            *Task.Meta.constraints,
            models.UniqueConstraint(fields=["sheet", "release"], name="one_elicitation_per_sheet_and_release"),
            models.CheckConstraint(
                condition=Q(status="completed", made_at__isnull=False)
                | (~Q(status="completed") & Q(made_at__isnull=True, declined=False)),
                name="only_a_completed_elicitation_was_made",
            ),
        ]
        indexes = [
            *Task.Meta.indexes,
            models.Index(fields=["family", "status"], name="elicitation_by_family"),
        ]
        ordering = ["-sheet_id", "release_id"]

    def __str__(self) -> str:
        return f"{self.release.display_name}, {self.sheet}"

    @classmethod
    def of_week(cls, week_start: datetime) -> Q:
        return Q(sheet__question_set__day__gte=week_start, sheet__question_set__day__lt=week_start + WEEK)

    @property
    def week_start(self) -> datetime:
        return week_start(self.sheet.question_set.day)

    @property
    def rules(self) -> ForecastRules:
        rules = self.methodology.forecast_rules
        assert rules is not None
        return rules

    @property
    def window_ends_at(self) -> datetime:
        """Until when a failed one may be tried again."""
        return self.sheet.question_set.frozen_at + self.family.answers_within(self.rules.retry_window)

    @property
    def identity(self) -> str:
        asked, sheet = self.sheet.question_set, self.sheet
        return f"{asked.day.isoformat()}:{asked.methodology}:{asked.part}:{sheet.arm}:{sheet.number}:{self.model_id}"

    @property
    def about(self) -> dict[str, int | str]:
        return {"family": self.family.slug, "elicitation": self.pk, "sheet": self.sheet_id, "arm": self.sheet.arm}

    @property
    def retries(self) -> Retries:
        rules = self.rules
        return Retries(
            self.methodology.malformed_retries,
            self.methodology.refused_retries,
            rules.malformed_note,
            rules.refused_note,
        )

    @property
    def model_id(self) -> str:
        return self.release.model_id

    @property
    def token_prices(self) -> tuple[Decimal, Decimal]:
        return self.release.price_prompt, self.release.price_completion

    @property
    def system_prompt(self) -> str:
        return self.rules.system_prompt

    def user_prompt(self, call: ModelCall) -> str:
        return self.prompt_text() + call.retry_note

    def prompt_text(self) -> str:
        """The user message, before any note on an earlier answer."""
        date = self.sheet.question_set.day.date().isoformat()
        return self.rules.user_prompt.format(date=date, questions=self.sheet.block)

    def read(self, content: str) -> Any:
        return [forecast.as_json() for forecast in read_forecasts(content)]


class ForecastQuerySet(models.QuerySet["Forecast"]):
    def scored(self) -> ForecastQuerySet:
        """Those whose question has come to an end with a result."""
        return self.filter(question__status=Question.Status.RESOLVED)


class Forecast(models.Model):
    """The probabilities that one family's release stated for one question, in one arm, on one day."""

    elicitation = models.ForeignKey(Elicitation, on_delete=models.PROTECT, related_name="forecasts")
    call = models.ForeignKey("agents.ModelCall", on_delete=models.PROTECT, related_name="forecasts")
    entry = models.ForeignKey(QuestionEntry, on_delete=models.PROTECT, related_name="forecasts")
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="forecasts")
    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="forecasts")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="forecasts")
    methodology = models.CharField(max_length=20, help_text="The methodology's version.")
    arm = models.CharField(max_length=20)
    probabilities: Any = models.JSONField(help_text="Option to probability.")
    stated: Any = models.JSONField(help_text="Option to what was said, as text.")
    normalised = models.BooleanField(default=False, help_text="What was said did not sum to 1 exactly.")
    rationale = models.TextField(blank=True)
    made_at = models.DateTimeField()

    objects = ForecastQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["elicitation", "entry"], name="one_forecast_per_elicitation_and_entry")
        ]
        indexes = [
            models.Index(fields=["-made_at"], name="forecast_by_time"),
            models.Index(fields=["question", "arm", "family"], name="forecast_by_question"),
        ]
        ordering = ["-made_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.family} on {self.question}"


class RefusedForecast(models.Model):
    """A question of a sheet for which an answer gave no forecast that could be taken, and why."""

    call = models.ForeignKey("agents.ModelCall", on_delete=models.PROTECT, related_name="refused_forecasts")
    entry = models.ForeignKey(QuestionEntry, on_delete=models.PROTECT, related_name="refused_forecasts")
    stated: Any = models.JSONField()
    reason = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["call", "entry"], name="one_refusal_per_call_and_entry")]
        ordering = ["call_id", "entry_id"]

    def __str__(self) -> str:
        return self.reason


def asked_of(entry: QuestionEntry) -> Asked:
    """The question as an answer is judged by (its options prefetched)."""
    question = entry.question
    return Asked(str(question.pk), tuple(option.name for option in question.options.all()), question.exclusive)
