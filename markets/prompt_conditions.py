"""The prompt conditions (arms) of the forecast protocol."""

PRICED, BLIND = ARMS = "priced", "blind"
"""The same questions with and without market prices, which separates knowledge from copying the market."""
EVIDENCE, SEARCH = "evidence", "search"
"""The sources that a condition may need."""
