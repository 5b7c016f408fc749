"""Decisions: the tasks of the trading protocol."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q

from agents.answer_schemas import DECISION_SCHEMA, REASONED_DECISION_SCHEMA
from agents.models.agent import Agent
from agents.models.family import Release
from agents.models.task import PromptParts, Task
from arena_verifier.decisions import parse_answer
from cohorts.models import Cohort, Methodology
from markets.models import Universe


class Decision(Task):
    """One agent's decision of one week: BET, SELL or HOLD."""

    PROTOCOL = "trading"

    class Action(models.TextChoices):
        BET = "BET"
        SELL = "SELL"
        HOLD = "HOLD"

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="decisions")
    cohort = models.ForeignKey(Cohort, on_delete=models.PROTECT, related_name="decisions")
    week = models.PositiveSmallIntegerField(help_text="Decision week, from 1.")
    universe = models.ForeignKey(
        Universe, null=True, on_delete=models.PROTECT, related_name="decisions", db_index=False,
        help_text="The universe of its prompt.",
    )  # fmt: skip
    action = models.CharField(max_length=4, choices=Action.choices, null=True, blank=True)
    fallback = models.BooleanField(
        default=False, help_text="True of a HOLD that was recorded because no usable answer came."
    )
    reasoning = models.TextField(blank=True, help_text="The model's reasoning.")
    decided_at = models.DateTimeField(null=True, blank=True, help_text="When the answer was recorded.")

    class Meta(Task.Meta):
        constraints = [
            *Task.Meta.constraints,
            models.UniqueConstraint(fields=["agent", "cohort", "week"], name="one_decision_per_agent_cohort_and_week"),
            models.CheckConstraint(
                condition=(Q(status="completed") & Q(action__isnull=False, decided_at__isnull=False))
                | (~Q(status="completed") & Q(action__isnull=True)),
                name="only_a_completed_decision_has_an_action",
            ),
            models.CheckConstraint(condition=Q(fallback=False) | Q(action="HOLD"), name="a_fallback_is_a_hold"),
        ]
        indexes = [
            *Task.Meta.indexes,
            models.Index(fields=["status", "decided_at", "id"], name="decision_by_time"),
            models.Index(fields=["agent", "status", "decided_at"], name="decision_by_agent"),
            models.Index(fields=["universe", "agent", "id"], name="decision_by_universe"),
            models.Index(fields=["week", "id"], name="decision_by_week"),
            models.Index(fields=["decided_at", "id"], name="decision_by_instant"),
        ]
        ordering = ["-cohort_id", "-week", "agent_id"]

    def __str__(self) -> str:
        return f"{self.agent}, week {self.week}"

    @classmethod
    def in_week(cls, week_start: datetime) -> Q:
        return Q(universe__week_start=week_start)

    @property
    def seal_end(self) -> datetime | None:
        return None if self.universe is None else self.universe.sealed_until

    @property
    def week_start(self) -> datetime:
        assert self.universe is not None
        return self.universe.week_start

    @property
    def methodology(self) -> Methodology:
        return self.cohort.methodology

    @property
    def stable_key(self) -> str:
        agent = self.agent
        return f"{self.cohort.week_start.isoformat()}:{agent.family_id}:{agent.model_id}:{self.week}"

    @property
    def log_context(self) -> dict[str, int | str]:
        agent = self.agent
        return {
            "cohort": agent.cohort.number,
            "agent": agent.pk,
            "family": agent.family.slug,
            "decision": self.pk,
            "week": self.week,
        }

    @property
    def release(self) -> Release:
        return self.agent.release

    @property
    def competitor(self) -> Agent:
        return self.agent

    def user_prompt(self, parts: PromptParts) -> str:
        message = self.rules.user_prompt.format(
            portfolio=parts.portfolio_block,
            positions=parts.positions_block,
            awaiting=parts.awaiting,
            markets=self.universe.market_block if self.universe else "",
        )
        return message + parts.retry_note

    @property
    def answer_schema(self) -> dict[str, Any]:
        return REASONED_DECISION_SCHEMA if self.methodology.trading_rules.bet_reasons else DECISION_SCHEMA

    def parse(self, content: str) -> Any:
        return parse_answer(content, bet_reasons=self.methodology.trading_rules.bet_reasons).as_json()
