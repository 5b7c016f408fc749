"""Releases that the gateway answers with 404: one alert each, and not asked again until a person says so."""

from datetime import datetime

from foundation.models import AlertItem
from foundation.services.alerts import raise_alert

RELEASE_GONE = "release-gone"


def raise_gone_alert(model_id: str, reason: str, *, at: datetime) -> None:
    raise_alert(
        kind=RELEASE_GONE,
        items={model_id: reason},
        subject=model_id,
        message=f"{model_id} is not asked any more: {reason}",
        at=at,
        path="/admin/agents/lineup/",
        remedy="Approve a successor (check_lineup proposes one) for coming cohorts. Acknowledge this alert to have the "
        "release asked again, once the gateway has it.",
    )


def gone_releases() -> dict[str, str]:
    """Why each release is not asked, by its model's id, while its alert is open."""
    items = AlertItem.objects.filter(kind=RELEASE_GONE, cleared_at=None).order_by()
    return dict(items.values_list("subject", "name"))
