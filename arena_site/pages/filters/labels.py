"""Small HTML fragments that pages repeat hundreds of times: Python instead of template includes."""

from functools import lru_cache

from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.models import Decision, Family
from arena_site.pages import charts


def family_label(family: Family) -> SafeString:
    """A family's marker and name."""
    return _family_label(family.display_name, family.color, charts.marker_of(family), external=family.external)


@lru_cache(maxsize=500)
def _family_label(name: str, color: str, marker: int, *, external: bool) -> SafeString:
    return format_html(
        '<svg class="marker" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">'
        '<path d="{}" fill="{}"/></svg>{}{}',
        charts.marker_path(marker, 6, 6),
        charts.readable_color(color),
        name,
        format_html(' <span class="badge">{}</span>', "external") if external else "",
    )


def decision_badge(decision: Decision) -> SafeString:
    """A decision's action, or its status while it has none."""
    if decision.status == Decision.Status.COMPLETED:
        action = _badge(str(decision.action).lower(), str(decision.action))
        return format_html("{} {}", action, _badge("fallback", "fallback")) if decision.fallback else action
    if decision.status == Decision.Status.CLAIMED:
        return _badge("waiting", "deciding")
    return _badge(decision.status, decision.status)


@lru_cache(maxsize=100)
def _badge(css_class: str, text: str) -> SafeString:
    return format_html('<span class="badge {}">{}</span>', css_class, text)


def readable_color(color: str) -> str:
    """The colour with enough contrast to the background of both themes."""
    return charts.readable_color(color)
