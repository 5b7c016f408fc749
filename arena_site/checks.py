"""System checks of the settings, run with `manage.py check --deploy` and before `manage.py arena` serves."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError, connections

from foundation.guards import unguarded

PUBLIC_GATEWAY = "https://openrouter.ai"
SETTINGS = "arena-settings"
"""The tag of the checks of settings."""


@register(SETTINGS, deploy=True)
def secret_key_is_set(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.SECRET_KEY_IS_SET or settings.DEBUG:
        return []
    return [Error("SECRET_KEY is not set", hint="Put SECRET_KEY=<50 random characters> into .env.", id="arena.E001")]


@register(SETTINGS, deploy=True)
def gateway_has_a_key(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.OPENROUTER_API_KEY or not settings.OPENROUTER_BASE_URL.startswith(PUBLIC_GATEWAY):
        return []
    return [Warning("OPENROUTER_API_KEY is not set: every decision will fail", id="arena.W001")]


@register(SETTINGS, deploy=True)
def https_has_a_proxy(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if not settings.ARENA_HTTPS or settings.ARENA_TRUSTED_PROXIES:
        return []
    message = "ARENA_HTTPS without ARENA_TRUSTED_PROXIES: every page redirects to itself, for ever"
    return [Error(message, hint="Put ARENA_TRUSTED_PROXIES=<the front's address> into .env.", id="arena.E002")]


@register(SETTINGS, deploy=True)
def hosts_are_named(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [Warning("ALLOWED_HOSTS holds *: any Host header is accepted", id="arena.W002")]


@register(Tags.database)
def record_is_guarded(app_configs: Any, databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """A warning only: an error would keep `migrate` from repairing it."""
    messages: list[CheckMessage] = []
    for alias in databases or []:
        try:
            tables = unguarded(connections[alias])
        except DatabaseError:
            continue  # reported by the code that needs the database
        if tables:
            message = f"the database does not guard: {', '.join(tables)}"
            messages.append(Warning(message, hint="Run `manage.py migrate`.", id="arena.W003"))
    return messages
