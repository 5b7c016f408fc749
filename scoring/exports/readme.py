"""README.md and LICENSE.txt of an archive."""

from collections.abc import Mapping
from typing import Any

from forecast_rank.files.descriptions import Dataset

from markets.sources.registry import SOURCES

DATASET = Dataset(
    name="forecaster-arena",
    title="Forecaster Arena: forecasts and paper trades of language models",
    summary="Decisions, forecasts, trades, prices and scores of language models that forecast real events.",
    url="/data/",
    creator="Forecaster Arena",
    license="CC-BY-4.0",
    license_url="https://creativecommons.org/licenses/by/4.0/",
    terms="CC BY 4.0 for the arena's own data; venues' texts and prices and models' outputs by their owners' terms.",
)
LICENSE = """\
Terms of reuse

1. Data made by the arena (decisions, trades, positions, journals, accepted prices, scores, leaderboards, hash chains,
   its own prompts and this data dictionary) may be used by anyone for any purpose under CC BY 4.0
   (Creative Commons Attribution 4.0 International). Name "Forecaster Arena" and the hash of the manifest.

2. Market questions, rules, descriptions, outcome names and prices of order books belong to their venues
   ({venues}). They are included so that results can be checked. Republish them only under the venue's own terms.

3. Model outputs (columns raw_response, reasoning, rationale, payload, stated) were made by the models of their
   providers. They are included so that results can be checked; the providers' terms for outputs apply, some of which
   forbid training competing models on them.

Nothing here is advice. The portfolios are paper; trades moved no market and had no depth.
""".format(venues=", ".join(source.label for source in SOURCES.values()))

README = """\
# Forecaster Arena: data

Made {at}. Selection: {selection}.

- `csv/` and `parquet/`: one file for each table. `dictionary.json` gives each column's meaning, type, unit
  and reference; `datapackage.json` (Frictionless) and `croissant.json` (Croissant) say the same to other tools.
- `methodologies.json`: the frozen rules, by version. `prompts` holds each text that prompts were made of once, by its
  SHA-256. A call's user message is its template with the blocks of the call and of `prompts`, then its retry note.
- `manifest.json`: the SHA-256 of every file and of itself, and the heads of both hash chains. Compare the heads with
  those that the arena publishes under `/api/v1/chain/`.

`manage.py verify_export DIR` checks all hashes from these files alone and recomputes every number that follows from
others: cash, positions, values, scores, returns and both leaderboards.

## Cells

Decimals (money to the cent, shares to the millionth, prices to ten places, costs to twelve) are exact: `decimal128` in
Parquet. Times are UTC to the microsecond: timestamps in Parquet, in CSV ISO-8601, which sorts as text. An empty cell is
null, except in text columns, which are never null. In Parquet texts with few values (status, kind, side, action, arm,
source, category) are categories.

In CSV, a text or JSON cell that begins with `=`, `+`, `-`, `@`, a tab, a carriage return or an apostrophe has one more
apostrophe before it, so that a spreadsheet does not run it as a formula: drop one leading apostrophe to have the text.
Numbers are never changed; a negative one stays a number. Parquet holds every text unchanged.

## Known limits

Bet-implied confidence is a share of cash, not a probability: its Brier score is no proper score. Paper trades have no
depth. Hosted models change behind stable names: the returned model and provider are in `calls`. Old snapshots and
prices are thinned out. A window is half-open, [from, to); markets, questions, agents and families that its rows refer
to are included. Leaderboards are only in archives of everything.
Terms of reuse: LICENSE.txt.
"""


def readme_text(selection: Mapping[str, Any], at: str) -> str:
    """The README of an archive."""
    narrowed_by = ", ".join(f"{name} {value}" for name, value in selection.items() if value is not None)
    return README.format(at=at, selection=narrowed_by or "everything")
