"""Bases of admin classes: read-only records with bounded counts, and list filters."""
