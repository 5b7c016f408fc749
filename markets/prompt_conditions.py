"""The sources that a condition of the forecast protocol may need."""

EVIDENCE, SEARCH = "evidence", "search"
