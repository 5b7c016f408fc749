"""Forecasts: the probabilities that an elicitation recorded, and those that it refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db import models
from django.db.models import Q

from agents.forecast_answers import CheckedForecast, PromptQuestion, StatedForecast, check_forecasts
from agents.models.call import ModelCall
from agents.models.elicitation import Elicitation
from agents.models.family import Family, Release
from agents.models.sealed_rows import SealableQuerySet, Seals
from markets.models import Question, QuestionEntry


class ForecastQuerySet(SealableQuerySet["Forecast"]):
    def resolved(self) -> ForecastQuerySet:
        """Forecasts whose question has resolved with a result."""
        return self.filter(question__status=Question.Status.RESOLVED)


class Forecast(models.Model):
    """The probabilities that one family's release stated for one question, in one arm, on one day."""

    elicitation = models.ForeignKey(Elicitation, on_delete=models.PROTECT, related_name="forecasts")
    call = models.ForeignKey(ModelCall, on_delete=models.PROTECT, related_name="forecasts")
    entry = models.ForeignKey(QuestionEntry, on_delete=models.PROTECT, related_name="forecasts")
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="forecasts")
    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="forecasts")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="forecasts")
    methodology = models.CharField(max_length=20, help_text="The methodology's version.")
    arm = models.CharField(max_length=20)
    probabilities: Any = models.JSONField(help_text="Option to probability.")
    stated: Any = models.JSONField(help_text="Option to probability, as text, before any normalisation.")
    normalised = models.BooleanField(default=False, help_text="The stated probabilities were scaled to sum to 1.")
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

    @classmethod
    def sealed_by(cls, seals: Seals) -> Q:
        return Q(entry__question_set__in=list(seals.question_sets))


class RefusedForecast(models.Model):
    """A question of a batch for which an answer gave no valid forecast, with the reason."""

    call = models.ForeignKey(ModelCall, on_delete=models.PROTECT, related_name="refused_forecasts")
    entry = models.ForeignKey(QuestionEntry, on_delete=models.PROTECT, related_name="refused_forecasts")
    stated: Any = models.JSONField()
    reason = models.TextField()

    objects = SealableQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["call", "entry"], name="one_refusal_per_call_and_entry")]
        ordering = ["call_id", "entry_id"]

    def __str__(self) -> str:
        return self.reason

    @classmethod
    def sealed_by(cls, seals: Seals) -> Q:
        return Q(entry__question_set__in=list(seals.question_sets))


class ReadForecast(NamedTuple):
    """An entry, the call whose answer is about it, and the forecast in that answer."""

    entry: QuestionEntry
    call: ModelCall
    forecast: CheckedForecast


def read_forecasts(calls: Iterable[ModelCall], entries: Sequence[QuestionEntry]) -> list[ReadForecast]:
    """For each entry the first valid forecast of these calls' answers; without one, the last call's refusal.

    Empty without calls. Expects the options of the entries' questions prefetched.
    """
    answers = list(calls)
    checked = first_valid([call.parsed or () for call in answers], list(map(prompt_question, entries)))
    forecasts = []
    for entry, (place, forecast) in zip(entries, checked, strict=bool(answers)):
        forecasts.append(ReadForecast(entry, answers[place], forecast))
    return forecasts


def first_valid(
    answers: Sequence[Sequence[dict[str, Any]]], questions: Sequence[PromptQuestion]
) -> list[tuple[int, CheckedForecast]]:
    """For each question its first valid forecast with the place of its answer, else the last answer's refusal."""
    results: list[tuple[int, CheckedForecast]] = []
    for place, answer in enumerate(answers):
        forecasts = check_forecasts(list(map(StatedForecast.from_json, answer)), questions)
        for number, forecast in enumerate(forecasts):
            if place == 0:
                results.append((place, forecast))
            elif results[number][1].probabilities is None:
                results[number] = place, forecast
    return results


def prompt_question(entry: QuestionEntry) -> PromptQuestion:
    """The question of an entry as forecasts are checked against it; expects its options prefetched."""
    question = entry.question
    return PromptQuestion(str(question.pk), tuple(option.name for option in question.options.all()), question.exclusive)
