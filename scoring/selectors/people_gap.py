"""The gap between the best model and the best line of people on a board of imported forecasts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scoring.constants import SIGNIFICANCE

MINIMUM_EVENTS = 4
"""Below this number of common events there is no interval."""
PROMPTS_UNKNOWN = "Whether the model was shown the market’s prices is not known."


@dataclass(frozen=True, slots=True)
class PeopleGap:
    """The Brier score of a model less that of people, on the questions that both answered.

    n, events : common forecasts, and their events
    difference : above 0 the people forecast better
    interval, p_adjusted : clustered by event, corrected by Holm for all pairs of the board; None below MINIMUM_EVENTS
    """

    model: str
    people: str
    n: int
    events: int
    difference: float
    interval: Sequence[float] | None
    p_adjusted: float | None

    @property
    def sentence(self) -> str:
        """The gap in words, with what is known of the prompts of models from elsewhere: nothing."""
        return f"{self._claim} {PROMPTS_UNKNOWN}"

    @property
    def _claim(self) -> str:
        basis = f"on {self.n:,} common question{'' if self.n == 1 else 's'} of {self.events:,} events"
        size = f"{abs(self.difference):.4f}"
        if self.interval is None or self.p_adjusted is None:
            return f"{self.model}’s Brier score differs by {size} from that of {self.people}, {basis}: too few to tell."
        low, high = self.interval
        basis = f"95 % interval {low:+.4f} to {high:+.4f}, {basis}".replace("-", "−")
        if self.p_adjusted >= SIGNIFICANCE:
            return f"No difference is shown between {self.model}, the best model, and {self.people}: {size} ({basis})."
        ahead, behind = (self.people, self.model) if self.difference > 0 else (self.model, self.people)
        return f"{ahead} forecasts better than {behind}: its Brier score is {size} lower ({basis})."


def people_gap(report: Mapping[str, Any], people: Collection[str]) -> PeopleGap | None:
    """The gap by a board's report, of `rank`, and the names of its people; None where it lacks models or people.

    The best of each is the first by the score that heads the report; the test is the board's paired test of the two.
    """
    ranking = report.get("rankings", {}).get(report.get("headline") or "brier", [])
    model = next((name for name in ranking if name not in people), None)
    best_people = next((name for name in ranking if name in people), None)
    for pair in report.get("pairs", []):
        if {pair["first"], pair["second"]} == {model, best_people} and pair["difference"] is not None:
            sign = 1 if pair["first"] == model else -1
            difference, margin = sign * pair["difference"], pair["margin"]
            enough = pair["events"] >= MINIMUM_EVENTS and margin is not None
            interval = [max(-1.0, difference - margin), min(1.0, difference + margin)] if enough else None
            return PeopleGap(
                model=str(model),
                people=str(best_people),
                n=pair["n"],
                events=pair["events"],
                difference=difference,
                interval=interval,
                p_adjusted=pair["p_holm"] if enough else None,
            )
    return None
