"""The columns that a file of forecasts may have."""

NAMES = ("forecaster", "question", "option", "event", "category")
NUMBERS = ("probability", "outcome", "odds", "no_odds", "quote", "weight", "exclusive")
TIMES = ("made_at", "closed_at")
FLAGS = ("outcome", "exclusive")
REQUIRED = ("forecaster", "question", "probability", "outcome")
BINARY = "YES"
"""The option of each row where a file names none: one row for each question."""

KNOWN = NAMES + NUMBERS + TIMES
