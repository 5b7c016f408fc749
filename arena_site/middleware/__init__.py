"""Middleware of the site, and what it knows of a request: its client, its deadline, its cached response."""
