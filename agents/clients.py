"""The gateway client and the call settings that Django's settings define."""

import math
import time
from datetime import timedelta

from django.conf import settings

from agents.gateway.catalogue import ModelCatalogue
from agents.gateway.client import Gateway
from agents.gateway.completions import GatewayFailure
from agents.services.model_calls import CallSettings
from foundation import clock


def gateway() -> Gateway:
    return Gateway(
        settings.OPENROUTER_BASE_URL,
        settings.OPENROUTER_API_KEY or None,
        timeout_s=settings.ARENA_LLM_TIMEOUT_S,
        stall_s=settings.ARENA_LLM_STALL_S,
    )


def call_settings(gateway: Gateway, *, live: bool = False, minutes: float | None = None) -> CallSettings:
    """The settings of a run that asks nobody new after `minutes`; a live one dates answers by the clock."""
    return CallSettings(
        gateway=gateway,
        spend_limit=settings.ARENA_SPEND_LIMIT_USD,
        transport_retries=settings.ARENA_LLM_TRANSPORT_RETRIES,
        lease=timedelta(seconds=settings.ARENA_LEASE_S),
        asking_ends_s=math.inf if minutes is None else time.monotonic() + minutes * 60,
        clock=clock.recording_now if live else None,
    )


def reachable_catalogue() -> ModelCatalogue | None:
    """The gateway's catalogue for an estimate, which falls back to the stored terms where there is none."""
    try:
        return model_catalogue()
    except GatewayFailure:
        return None


def model_catalogue() -> ModelCatalogue | None:
    """The gateway's catalogue; None where the line-up is not checked against one. Raises GatewayFailure."""
    if settings.ARENA_LINEUP == "unchecked":
        return None
    timeout_s = settings.ARENA_VENUE_TIMEOUT_S
    with Gateway(settings.OPENROUTER_BASE_URL, settings.OPENROUTER_API_KEY or None, timeout_s) as gateway:
        return gateway.models()
