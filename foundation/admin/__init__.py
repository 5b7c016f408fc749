"""Bases of the admin, and the admin of runs and alerts."""

from foundation.admin import alerts, runs
