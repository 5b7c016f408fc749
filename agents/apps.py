from django.apps import AppConfig
from django.dispatch import Signal

decisions_recorded = Signal()
"""Sent with `at` when a decision run has ended: cash, positions and costs may have changed.

Received in `scoring/apps.py`.
"""


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = "Agents, decisions and the ledger"
