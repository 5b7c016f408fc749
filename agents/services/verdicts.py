"""Verdicts: the effects of a judged answer, carried out at once or stored until the seal of its task ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.models import Agent, Decision, Elicitation, Forecast, ModelCall, RefusedForecast
from agents.models.forecast import ReadForecast
from agents.services.execution import InstructionVerdict, carry_out, judge_answer
from agents.services.samples import new_forecast
from arena_verifier.decisions import Answer
from arena_verifier.forecasts import CheckedForecast
from foundation.bulk import rows_by
from foundation.failpoints import failpoint
from markets.models import Universe

FORECAST_FIELDS = ("stated", "probabilities", "normalised", "rationale", "reason")


@dataclass(frozen=True, slots=True)
class DecisionVerdict:
    """The action of a decision, and the verdict on each of its instructions."""

    action: str
    reasoning: str = ""
    fallback: bool = False
    error: str = ""
    instructions: Sequence[InstructionVerdict] = ()

    @classmethod
    def judged(cls, answer: Answer, *, agent: Agent, universe: Universe) -> DecisionVerdict:
        """The verdict on an answer, by the state of a locked `agent`. Nothing is written."""
        instructions = judge_answer(answer, agent=agent, universe=universe)
        return cls(answer.action, answer.reasoning, instructions=instructions)

    @property
    def refusals(self) -> list[str]:
        """The reason for each instruction if none can be carried out, else none."""
        if any(instruction.is_executed for instruction in self.instructions):
            return []
        return [instruction.reason for instruction in self.instructions]

    def as_json(self) -> dict[str, Any]:
        instructions = [instruction.as_json() for instruction in self.instructions]
        return self.fields | {"instructions": instructions}

    @property
    def fields(self) -> dict[str, Any]:
        """The columns of the completed decision."""
        columns = {"action": str(self.action), "reasoning": self.reasoning, "fallback": self.fallback}
        return columns | {"error": self.error}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> DecisionVerdict:
        """The inverse of `as_json`."""
        instructions = tuple(map(InstructionVerdict.from_json, stored["instructions"]))
        return cls(**stored | {"instructions": instructions})

    def carry_out(self, decision: Decision, call: ModelCall, *, agent: Agent, at: datetime) -> None:
        """Trades for a locked agent and stores the instructions."""
        carry_out(self.instructions, agent=agent, decision=decision, call=call, at=at)
        failpoint("decision.traded")


@dataclass(frozen=True, slots=True)
class ForecastVerdict:
    """The forecast for each entry of a batch, or the reason why there is none; nothing of a declined one."""

    declined: bool = False
    error: str = ""
    rows: Sequence[ReadForecast] = ()

    def as_json(self) -> dict[str, Any]:
        forecasts = []
        for row in self.rows:
            forecast = {name: getattr(row.forecast, name) for name in FORECAST_FIELDS}
            forecasts.append(
                {
                    "call": row.call.sequence,
                    "position": row.entry.position,
                    "question": row.forecast.question_id,
                    **forecast,
                }
            )
        return self.fields | {"forecasts": forecasts}

    @property
    def fields(self) -> dict[str, Any]:
        """The columns of the completed elicitation."""
        return {"declined": self.declined, "error": self.error}

    @property
    def refused(self) -> list[ReadForecast]:
        return [row for row in self.rows if row.forecast.probabilities is None]

    @property
    def valid(self) -> list[ReadForecast]:
        return [row for row in self.rows if row.forecast.probabilities is not None]

    @property
    def refusals(self) -> list[str]:
        """The reason for each forecast if none can be taken, else none."""
        return [] if self.valid else [row.forecast.reason for row in self.refused]

    @classmethod
    def from_json(cls, stored: dict[str, Any], task: Elicitation) -> ForecastVerdict:
        """The inverse of `as_json`, for the task that was judged."""
        entries = rows_by("position", task.batch.entries.select_related("question"))
        calls, rows = rows_by("sequence", task.calls.all()), []
        for row in stored["forecasts"]:
            forecast = CheckedForecast(row["question"], **{name: row[name] for name in FORECAST_FIELDS})
            rows.append(ReadForecast(entries[row["position"]], calls[row["call"]], forecast))
        return cls(stored["declined"], stored["error"], rows)

    def carry_out(self, task: Elicitation, *, at: datetime) -> None:
        """Stores the forecasts, made at `at`, and the refused ones; those of several samples follow together."""
        self.store_refused()
        if task.samples == 1:
            Forecast.objects.bulk_create(new_forecast(task, row, made_at=at) for row in self.valid)

    def store_refused(self) -> None:
        refused = []
        for row in self.refused:
            said = {"stated": row.forecast.stated, "reason": row.forecast.reason}
            refused.append(RefusedForecast(call=row.call, entry=row.entry, **said))
        RefusedForecast.objects.bulk_create(refused)
