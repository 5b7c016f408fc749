"""Signals of this app, for the apps above it, which it can not import."""

from django.dispatch import Signal

decisions_recorded = Signal()
"""Sent with `at` when a decision run has ended: cash, positions and costs may have changed.

Received in `scoring/apps.py`.
"""
