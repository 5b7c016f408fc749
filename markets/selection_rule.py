"""The rules by which a day's questions are selected, and the conditions under which they are asked.

Imported on use, for pydantic's sake.
"""

from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from arena_verifier.texts import QUESTION_COLUMNS

Block = Literal["rules", "prices", "evidence"]
Source = Literal["evidence", "search"]
"""A source of data that a condition may need besides venues and gateway."""
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,19}$")]

MAX_SAMPLES = 9


class Rule(BaseModel):
    """A part of a methodology: frozen, without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SearchTool(Rule):
    """The gateway's search tool: its pinned engine, the limits of its use, and the hosts that it leaves out."""

    engine: Literal["exa", "parallel"] = "exa"
    max_uses: int = Field(default=3, ge=1, le=30)
    max_results: int = Field(default=5, ge=1, le=25)
    excluded_domains: tuple[str, ...] = ()


class Condition(Rule):
    """One way to put the questions: what a prompt shows, which tool a model has, how many samples are drawn of it.

    blocks : what is shown of a question; without `prices` neither prices nor spread nor volume
    tools : None, or the search tool
    temperature : of its samples; None for the methodology's
    on : asked; one that needs a source is asked wherever an operator has configured it
    """

    name: Name
    blocks: tuple[Block, ...] = ("rules", "prices")
    tools: SearchTool | None = None
    samples: int = Field(default=1, ge=1, le=MAX_SAMPLES)
    temperature: float | None = Field(default=None, ge=0, le=2)
    on: bool = True

    @property
    def sources(self) -> frozenset[Source]:
        """The sources without which it can not be asked."""
        needs: set[Source] = set()
        if "evidence" in self.blocks:
            needs.add("evidence")
        if self.tools is not None:
            needs.add("search")
        return frozenset(needs)

    @property
    def is_priced(self) -> bool:
        return "prices" in self.blocks

    @property
    def has_evidence(self) -> bool:
        return "evidence" in self.blocks

    def in_words(self, shown: str = "with", prices: str = "prices") -> str:
        """What it shows, as an adverbial: "with the market’s prices", "with evidence, without prices"."""
        blocks = ["the market’s prices"] if self.is_priced else []
        blocks += ["evidence"] if self.has_evidence else []
        parts = [f"{shown} {' and '.join(blocks)}"] if blocks else []
        if self.tools is not None:
            parts.append("with a search tool")
        if not self.is_priced:
            parts.append(f"without {prices}")
        if "rules" not in self.blocks:
            parts.append("without resolution rules")
        return ", ".join(parts)

    @property
    def parts(self) -> frozenset[str]:
        """The blocks that it shows, and `search` where it has the tool."""
        return frozenset(self.blocks) | (frozenset() if self.tools is None else {"search"})

    @property
    def samples_needed(self) -> int:
        """The fewest readable samples that make a forecast: half of those asked, rounded up."""
        return (self.samples + 1) // 2

    def is_on(self, configured: frozenset[Source]) -> bool:
        """Whether it is asked where these sources are configured."""
        return self.sources <= configured and (self.on or bool(self.sources))


class EvidenceRule(Rule):
    """How snippets are gathered for a question.

    query : a template with {question}
    fewest, most : snippets wanted of a question; fewer are shown where a source has fewer
    """

    query: str = "{question}"
    fewest: int = Field(default=8, ge=1)
    most: int = Field(default=12, ge=1, le=50)
    characters: int = Field(default=1500, ge=100, le=10_000)
    excluded_hosts: tuple[str, ...] = ()


class SelectionRule(Rule):
    """Which questions a day gets, and the conditions under which they are asked; a methodology's forecast rules."""

    conditions: tuple[Condition, ...] = Field(min_length=1)
    board_condition: str = ""
    question_columns: tuple[str, ...] = QUESTION_COLUMNS
    rules_characters: int | None = Field(default=None, ge=100)
    evidence: EvidenceRule = EvidenceRule()
    questions_per_day: int = Field(gt=0)
    questions_per_call: int = Field(gt=0)
    most_options: int = Field(ge=2)
    minimum_volume: Decimal
    soonest_days: int
    latest_days: int
    category_share: Decimal = Field(gt=0, le=1)

    @model_validator(mode="before")
    @classmethod
    def _conditions_of_arms(cls, stored: Any) -> Any:
        """Versions that name two arms: the first shows prices, the other does not."""
        if not isinstance(stored, dict) or "arms" not in stored:
            return stored
        if "conditions" in stored:
            raise ValueError("conditions: arms are named as well")
        rules = {name: value for name, value in stored.items() if name != "arms"}
        conditions = []
        for place, arm in enumerate(stored["arms"]):
            conditions.append({"name": arm, "blocks": ("rules", "prices") if place == 0 else ("rules",)})
        return {**rules, "conditions": conditions}

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        names = [condition.name for condition in self.conditions]
        if len(set(names)) < len(names):
            raise ValueError("conditions: a name is given twice")
        if self.board_condition and self.board_condition not in names:
            raise ValueError(f"board_condition: {self.board_condition!r} is no condition")
        return self

    @property
    def board(self) -> str:
        """The condition whose row stands for a model on the boards."""
        return self.board_condition or self.conditions[0].name

    def condition(self, name: str) -> Condition:
        """The condition of a name. Raises LookupError for one that the rules do not have."""
        for condition in self.conditions:
            if condition.name == name:
                return condition
        raise LookupError(f"no condition is named {name!r}")

    def with_at_most(self, questions: int) -> Self:
        return self.model_copy(update={"questions_per_day": min(questions, self.questions_per_day)})

    @property
    def category_limit(self) -> int:
        return max(1, int(self.questions_per_day * self.category_share))
