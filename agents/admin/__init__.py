"""Agents, what they said and what it came to, for the operator."""

from agents.admin import families, ledger, registrations, tasks  # noqa: F401 - each registers what it holds
