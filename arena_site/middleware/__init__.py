"""Middleware of the site, and what it knows of a request: its client, its deadline, its cached response."""

READS = ("GET", "HEAD")
ADMIN, API, SUBMISSIONS = "/admin/", "/api/", "/api/v1/submissions/"
METRICS = "/metrics"
PROBES = ("/healthz", "/readyz", METRICS)
"""Beginnings of addresses that several of them treat apart; probes are what monitors ask."""
