"""Choices in a page's address, and links to the same page with other choices."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest

from cohorts.conditions import Conditions


@dataclass(frozen=True, slots=True)
class PageSelection:
    """The chosen value of each query parameter. A parameter's first choice is its default, left out of addresses."""

    choices: Mapping[str, Sequence[str]]
    values: Mapping[str, str]

    @classmethod
    def from_request(cls, request: HttpRequest, choices: Mapping[str, Sequence[str]]) -> "PageSelection":
        """The request's choices. Raises Http404 for an unknown one."""
        values = {}
        for name, options in choices.items():
            values[name] = request.GET.get(name, options[0])
            if values[name] not in options:
                raise Http404(f"{name}={values[name]} is not one of: {', '.join(filter(None, options))}")
        return cls(choices, values)

    @classmethod
    def dated(cls, request: HttpRequest, choices: Mapping[str, Sequence[str]] | None = None) -> "PageSelection":
        """The request's choices, and its instant (`as_of`) as it is written. Raises Http404 for an unknown choice."""
        return cls.from_request(request, choices or {}).with_text("as_of", request.GET.get("as_of", ""))

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    def with_text(self, name: str, value: str) -> "PageSelection":
        """The selection with a parameter of any text, which is empty by default."""
        return replace(self, choices={**self.choices, name: [""]}, values={**self.values, name: value})

    @property
    def chosen(self) -> dict[str, str]:
        """The values other than the defaults."""
        return {name: value for name, value in self.values.items() if value != self.choices[name][0]}

    def of(self, *names: str) -> dict[str, str]:
        """The values of these parameters that are not empty."""
        return {name: self[name] for name in names if self[name]}

    def query(self, **changes: str) -> str:
        """The query string of the same page with some choices changed."""
        return "?" + urlencode(replace(self, values={**self.values, **changes}).chosen)

    @property
    def suffix(self) -> str:
        """The query string of the page with all its choices; empty where all are defaults."""
        return self.query() if self.chosen else ""

    @property
    def shown(self) -> dict[str, str]:
        """The choices other than the defaults that change what a page shows, and not only its order."""
        return {name: value for name, value in self.chosen.items() if name != "sort"}

    def links(self, name: str, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """A link for each value of a parameter."""
        links = []
        for value, label in labels.items():
            links.append({"query": self.query(**{name: value}), "label": label, "selected": value == self[name]})
        return links

    def filter_links(self, rows: Sequence[tuple[str, str, Mapping[str, str]]]) -> list[dict[str, Any]]:
        """Rows of links (caption, parameter, labels), without those that leave no choice."""
        link_rows = []
        for caption, name, labels in rows:
            if len(labels) > 1:
                link_rows.append({"caption": caption, "links": self.links(name, labels)})
        return link_rows


def shown_query(selection: PageSelection | None, page: int) -> str:
    """The query string that shows what a page shows: its filters, its instant and the number of the page of a list."""
    values = selection.shown if selection else {}
    if page > 1:
        values["page"] = str(page)
    return f"?{urlencode(values)}" if values else ""


def condition_labels(conditions: Conditions, selection: PageSelection, arms: Collection[str]) -> dict[str, str]:
    """Labels of the conditions that have boards, and of the chosen one."""
    return {name: conditions.label(name) for name in selection.choices["arm"] if name in {*arms, selection["arm"]}}


def all_or_one(label: str, values: Sequence[str], *, minimum: int = 1) -> dict[str, str]:
    """Labels of a parameter that narrows a board: none, or one of the values; empty for fewer than `minimum` values."""
    return {"": label, **dict(zip(values, values, strict=True))} if len(values) >= minimum else {}
