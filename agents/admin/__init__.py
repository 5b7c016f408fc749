"""Admin of families, tasks, the ledger and external agents."""

from agents.admin import families, ledger, registrations, tasks
