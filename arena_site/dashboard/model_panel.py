"""The dashboard's models: their states in the last runs, and the calls, failures, latency and cost of a week."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any

from django.db.models import Q
from django.utils.safestring import SafeString

from agents.letters import published
from agents.models import Family, ModelCall, Release
from agents.services.call_usage import ACCOUNT_REFUSALS
from arena_site.dashboard.action import list_path
from arena_site.dashboard.graphics import Bar, bar_chart
from arena_site.dashboard.state_grid import Cell, decision_grid, forecast_grid

DAYS_SHOWN = 7
COLOURS = 10
"""Models beyond these share their colours."""
CAP_IN_SCALE = Decimal(8)
"""The chart reaches up to the spend cap unless that is so many times its highest day."""
COLUMN = 0.7
"""The part of a day's slot that its column fills."""
UNUSABLE = (
    ModelCall.Result.FAILED, ModelCall.Result.LOST, ModelCall.Result.MALFORMED, ModelCall.Result.CUT,
    ModelCall.Result.DECLINED, ModelCall.Result.REFUSED,
)  # fmt: skip
"""Results of calls that brought no usable answer."""
CALL_COLUMNS = ("model", "sent_at", "result", "latency_ms", "cost_usd")


@dataclass(slots=True)
class CallFigures:
    """The calls of some models within the days shown."""

    calls: int = 0
    last_result: str = ""
    last_answer_at: datetime | None = None
    unusable: int = 0
    cost: Decimal = Decimal(0)
    latencies: list[int] = field(default_factory=list)
    daily: dict[int, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    """Cost by day, 0 being the first."""

    def percentile(self, fraction: float) -> int | None:
        """The nearest-rank percentile of the latencies, in milliseconds."""
        ordered = sorted(self.latencies)
        return ordered[max(0, -int(-fraction * len(ordered) // 1) - 1)] if ordered else None

    @property
    def median(self) -> int | None:
        return self.percentile(0.5)

    @property
    def p95(self) -> int | None:
        return self.percentile(0.95)

    @property
    def unusable_fraction(self) -> float:
        return self.unusable / self.calls if self.calls else 0.0


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A family, or a model that no family names, with the states of its last runs and its calls."""

    name: str
    models: Sequence[str]
    decisions: Sequence[Cell | None]
    forecasts: Sequence[Cell | None]
    figures: CallFigures
    colour: str
    since: datetime
    paused: bool = False

    @property
    def state(self) -> str:
        """A word for whether it is asked, and the result of the last request."""
        if self.paused:
            return "paused"
        return "fails" if self.figures.last_result in UNUSABLE else "answers" if self.figures.last_result else ""

    @property
    def state_class(self) -> str:
        return {"paused": "warn", "fails": "bad"}.get(self.state, "good")

    def _path(self, **lookup: Any) -> str:
        return list_path(ModelCall, model__in=",".join(self.models), sent_at__gte=self.since.isoformat(), **lookup)

    @property
    def calls_path(self) -> str:
        return self._path()

    @property
    def unusable_path(self) -> str:
        return self._path(result__in=",".join(UNUSABLE))

    @property
    def latency_path(self) -> str:
        return self._path(latency_ms__isnull=0)

    def day_path(self, day: datetime) -> str:
        window = {"sent_at__gte": day.isoformat(), "sent_at__lt": (day + timedelta(days=1)).isoformat()}
        return list_path(ModelCall, model__in=",".join(self.models), **window)


@dataclass(frozen=True, slots=True)
class CostDay:
    """A day's cost over all models, with its calls."""

    day: datetime
    cost: Decimal
    path: str


class ModelPanel:
    """The grid of states, the figures of each model, and the cost by model and day."""

    def __init__(self, now: datetime, caps: Mapping[str, Decimal], paused: Set[int | None] = frozenset()) -> None:
        today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        self.since, self.cap = today - timedelta(days=DAYS_SHOWN - 1), max(caps.values())
        self._decisions, self._forecasts = decision_grid(), forecast_grid()
        self.weeks, self.days = self._decisions.runs, self._forecasts.runs
        self.rows: list[ModelRow] = []
        figures_of: dict[str, CallFigures] = {}
        for family, models in _families(self._decisions.families | self._forecasts.families):
            figures = CallFigures()
            figures_of |= dict.fromkeys(models, figures)
            self._add(family.display_name, models, figures, family.pk, paused=bool(paused & {None, family.pk}))
        for model in _add_calls(figures_of, self.since):
            self._add(model, [model], figures_of[model])
        self.cost_days = list(map(self._cost_day, range(DAYS_SHOWN)))
        self.cost = sum(map(attrgetter("figures.cost"), self.rows), Decimal(0))
        self.cost_path = list_path(ModelCall, sent_at__gte=self.since.isoformat())
        highest = max(map(attrgetter("cost"), self.cost_days))
        self.cap_in_scale = highest * CAP_IN_SCALE >= self.cap > 0
        self.scale = max(highest, self.cap) if self.cap_in_scale else highest
        self.caps = "" if len(set(caps.values())) == 1 else ", ".join(f"{name} ${caps[name]:.2f}" for name in caps)
        """The caps of a week by protocol, where they differ."""
        self.chart = self._chart() if highest else ""

    def _add(
        self,
        name: str,
        models: Sequence[str],
        figures: CallFigures,
        family: int | None = None,
        *,
        paused: bool = False,
    ) -> None:
        decisions, forecasts = self._decisions.cells(family), self._forecasts.cells(family)
        colour = f"series-{len(self.rows) % COLOURS}"
        self.rows.append(ModelRow(name, models, decisions, forecasts, figures, colour, self.since, paused))

    def _cost_day(self, number: int) -> CostDay:
        day = self.since + timedelta(days=number)
        cost = sum((row.figures.daily[number] for row in self.rows), Decimal(0))
        window = {"sent_at__gte": day.isoformat(), "sent_at__lt": (day + timedelta(days=1)).isoformat()}
        return CostDay(day, cost, list_path(ModelCall, **window))

    def _chart(self) -> SafeString:
        bars = []
        for number, day in enumerate(self.cost_days):
            base = 0.0
            for row in self.rows:
                if cost := row.figures.daily[number]:
                    bars.append(
                        Bar(
                            x=(number + (1 - COLUMN) / 2) / DAYS_SHOWN,
                            width=COLUMN / DAYS_SHOWN,
                            height=float(cost / self.scale),
                            base=base,
                            css_class=row.colour,
                            title=f"{row.name}, {day.day:%a %d %b}: ${cost:.4f}",
                            path=row.day_path(day.day),
                        )
                    )
                    base += float(cost / self.scale)
        line = float(self.cap / self.scale) if self.cap_in_scale else None
        label = f"Cost by model and day, ${self.cost:.4f} in {DAYS_SHOWN} days"
        return bar_chart(bars, label=label, css_class="columns", line=line)


def _add_calls(figures_of: dict[str, CallFigures], since: datetime) -> list[str]:
    """Adds the calls since then to the figures of their models. Returns the models that had no figures yet."""
    known_models = set(figures_of)
    calls = published(ModelCall.objects.filter(sent_at__gte=since)).exclude(ACCOUNT_REFUSALS).order_by("sent_at", "pk")
    for call in calls.values_list(*CALL_COLUMNS, named=True).iterator():
        figures = figures_of.setdefault(call.model, CallFigures())
        figures.calls += 1
        figures.last_result = call.result
        if call.result == ModelCall.Result.ANSWERED:
            figures.last_answer_at = call.sent_at
        figures.unusable += call.result in UNUSABLE
        figures.cost += call.cost_usd
        figures.daily[min((call.sent_at - since).days, DAYS_SHOWN - 1)] += call.cost_usd
        if call.latency_ms is not None:
            figures.latencies.append(call.latency_ms)
    return sorted(figures_of.keys() - known_models)


def _families(played: Set[int]) -> list[tuple[Family, list[str]]]:
    """The families that played in the runs shown or may play, each with the ids of its models."""
    models: defaultdict[int, list[str]] = defaultdict(list)
    model_ids: set[str] = set()
    for family, model in Release.objects.order_by("-effective_from").values_list("family", "model_id"):
        if model not in model_ids:
            models[family].append(model)
            model_ids.add(model)
    rows = Family.objects.filter(Q(pk__in=played) | Q(active=True, external=False)).order_by("external", "pk")
    return [(family, models[family.pk]) for family in rows]
