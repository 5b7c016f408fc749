"""Admin of families, tasks, the ledger, external agents and operation."""

from agents.admin import families, ledger, operation, registrations, tasks
