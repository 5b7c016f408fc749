"""Forecasts: the probabilities that an elicitation recorded, and those that it refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db import models
from django.db.models import Exists, OuterRef, Q

from agents.models.call import ModelCall
from agents.models.elicitation import Elicitation
from agents.models.family import Family, Release
from arena_verifier.forecasts import CheckedForecast, PromptQuestion, StatedForecast, check_forecasts, first_valid
from markets.models import EvidenceSnippet, Question, QuestionEntry
from markets.models.question import frozen_before_close


class ForecastQuerySet(models.QuerySet["Forecast"]):
    def resolved(self) -> ForecastQuerySet:
        """Forecasts whose question has resolved with a result."""
        return self.filter(question__status=Question.Status.RESOLVED)

    def counted(self) -> ForecastQuerySet:
        """Forecasts that count on boards: frozen before the close, not excluded, no evidence states the outcome."""
        outcomes = EvidenceSnippet.objects.filter(entry=OuterRef("entry"), states_outcome=True)
        with_evidence = ~Q(elicitation__batch__evidence_block="")
        return self.filter(frozen_before_close("entry__"), excluded="").exclude(Exists(outcomes) & with_evidence)


class Forecast(models.Model):
    """The probabilities that one family's release stated for one question, in one arm, on one day."""

    elicitation = models.ForeignKey(Elicitation, on_delete=models.PROTECT, related_name="forecasts")
    call = models.ForeignKey(ModelCall, on_delete=models.PROTECT, related_name="forecasts")
    entry = models.ForeignKey(QuestionEntry, on_delete=models.PROTECT, related_name="forecasts")
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="forecasts")
    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="forecasts")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="forecasts")
    methodology = models.CharField(max_length=20, help_text="The methodology's version.")
    arm = models.CharField(max_length=20, help_text="The condition's name.")
    probabilities: Any = models.JSONField(help_text="Option to probability.")
    stated: Any = models.JSONField(
        help_text="Option to probability as the model wrote it, as text, before any normalisation."
    )
    normalised = models.BooleanField(
        default=False, help_text="True if the stated probabilities were divided by their sum, which was not exactly 1."
    )
    rationale = models.TextField(blank=True, help_text="The model's rationale.")
    made_at = models.DateTimeField(help_text="When the answer was recorded.")
    samples: Any = models.JSONField(
        null=True, blank=True, help_text="Sample to its probabilities, of those that were read; null of a single one."
    )
    samples_asked = models.PositiveSmallIntegerField(default=1, help_text="How many samples were asked.")
    samples_read = models.PositiveSmallIntegerField(default=1, help_text="How many of them could be read.")
    log_odds_mean: Any = models.JSONField(
        null=True, blank=True,
        help_text="Option to the probability of the samples' mean clipped log odds; null of a single one.",
    )  # fmt: skip
    spread = models.FloatField(
        null=True, blank=True,
        help_text="Standard deviation of the samples' clipped log odds, mean over options; null of one.",
    )  # fmt: skip
    searches = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Searches that the model made; null where it had none to make."
    )
    excluded = models.CharField(max_length=200, blank=True, help_text="Why it counts on no board, if it does not.")

    objects = ForecastQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["elicitation", "entry"], name="one_forecast_per_elicitation_and_entry"),
            models.UniqueConstraint(fields=["release", "entry", "arm"], name="one_forecast_per_release_entry_and_arm"),
        ]
        indexes = [
            models.Index(fields=["-made_at"], name="forecast_by_time"),
            models.Index(fields=["question", "arm", "family"], name="forecast_by_question"),
        ]
        ordering = ["-made_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.family} on {self.question}"


class RefusedForecast(models.Model):
    """A question of a batch for which an answer gave no valid forecast, with the reason."""

    call = models.ForeignKey(ModelCall, on_delete=models.PROTECT, related_name="refused_forecasts")
    entry = models.ForeignKey(QuestionEntry, on_delete=models.PROTECT, related_name="refused_forecasts")
    stated: Any = models.JSONField(help_text="The forecast as the model wrote it.")
    reason = models.TextField(help_text="The broken rule.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["call", "entry"], name="one_refusal_per_call_and_entry")]
        ordering = ["call_id", "entry_id"]

    def __str__(self) -> str:
        return self.reason


class ReadForecast(NamedTuple):
    """An entry, the call whose answer is about it, and the forecast in that answer."""

    entry: QuestionEntry
    call: ModelCall
    forecast: CheckedForecast


def read_forecasts(calls: Iterable[ModelCall], entries: Sequence[QuestionEntry]) -> list[ReadForecast]:
    """For each entry the first valid forecast of these calls' answers; without one, the last call's refusal.

    Empty without calls. Expects the options of the entries' questions prefetched.
    """
    answers, questions = list(calls), list(map(prompt_question, entries))
    checked = []
    for call in answers:
        checked.append(check_forecasts(list(map(StatedForecast.from_json, call.parsed or ())), questions))
    forecasts = []
    for entry, (place, forecast) in zip(entries, first_valid(checked), strict=bool(answers)):
        forecasts.append(ReadForecast(entry, answers[place], forecast))
    return forecasts


def prompt_question(entry: QuestionEntry) -> PromptQuestion:
    """The question of an entry as forecasts are checked against it; expects its options prefetched."""
    question = entry.question
    return PromptQuestion(str(question.pk), tuple(option.name for option in question.options.all()), question.exclusive)
