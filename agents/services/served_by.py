"""The provider, exact model and quantization that serve a release: an alert when they change between two calls."""

from datetime import datetime

from agents.models import ModelCall
from markets.models import Alert

CHANGED_ALERT = "model-served-otherwise"
SERVED_BY = ("provider", "returned_model", "quantization")


def check_served_by(call: ModelCall, *, at: datetime) -> None:
    """Raises an alert if a call was served otherwise than the last one of its agent, or of its release's forecasts."""
    if call.decision is not None:
        name, others = str(call.decision.agent), ModelCall.objects.filter(decision__agent=call.decision.agent_id)
    else:
        name = f"Forecasts of {call.model}"
        others = ModelCall.objects.filter(elicitation__release=call.task.release, elicitation__isnull=False)
    last = others.filter(pk__lt=call.pk).exclude(provider="").order_by("-pk").values(*SERVED_BY).first() or {}
    for field in SERVED_BY:
        before, now = last.get(field), getattr(call, field)
        if before and now and before != now:
            message = f"{name}: the {field.replace('_', ' ')} changed from {before} to {now} between two calls."
            Alert.objects.raise_once(CHANGED_ALERT, f"call {call.pk}, {field}", message, at)
