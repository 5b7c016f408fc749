"""Formats of dates and times in the admin, by language."""
