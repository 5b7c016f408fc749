"""What stands beside the tables for people: how to read them, and under what terms."""

from collections.abc import Mapping
from typing import Any

LICENSE = """\
Terms of reuse

1. What the arena made – decisions, trades, positions, journals, prices it accepted, scores, boards, chains, its own
   prompts and this data dictionary – may be used by anyone for any purpose under CC BY 4.0
   (Creative Commons Attribution 4.0 International). Name "Forecaster Arena" and the hash of the manifest.

2. Market questions, rules, descriptions and outcome names, and the prices quoted from books, belong to their venues
   (Polymarket, Kalshi). They are here so that results can be checked. Whoever republishes them does so under the
   venue's own terms.

3. What models answered (columns raw_response, reasoning, rationale, payload, stated) was made by models of their
   providers. It is here so that results can be checked; the providers' terms for outputs apply, some of which forbid
   to train competing models on them.

Nothing here is advice. The portfolios are paper; trades moved no market and had no depth.
"""

README = """\
# Forecaster Arena: data

Made {at}. Selection: {selection}.

- `csv/` or `parquet/`: a file for each table. `dictionary.json` says what each column means, its type and its unit.
- `methodologies.json`: the rules by version, as they are frozen; `prompts` holds every text that went into prompts
  once, by its SHA-256. A call's user message is its template with the blocks of the call and of `prompts`, then its
  retry note.
- `manifest.json`: the SHA-256 of every file and of itself, and the heads of both chains. Compare the heads with those
  that the arena publishes under `/api/v1/chain/`.

`manage.py verify_export DIR` checks all of it from these files alone and recomputes every number that follows from
others: cash, positions, values, scores, returns and both boards.

## How cells are written

Decimals (money to the cent, shares to the millionth, prices to ten places) are exact and are text in Parquet. Times are
UTC to the microsecond, so they sort as text. An empty cell is null, but in text columns, which are never null.

In CSV, a text or JSON cell that begins with `=`, `+`, `-`, `@`, a tab, a carriage return or an apostrophe has one more
apostrophe before it, so that a spreadsheet does not calculate it: drop one leading apostrophe to have the text.
Numbers are never touched; a negative one stays a number. Parquet holds every text as it was.

## Known limits

Bet-implied confidence is a share of cash, not a probability: its Brier score is no proper score. Paper trades have no
depth. Hosted models change behind stable names: the returned model and provider are in `calls`. Snapshots and prices
are rolled up with age. A window holds what happened in it, from its first instant up to but without its last; markets,
questions and competitors that it speaks of come along. Boards are in archives of everything alone.
Terms of reuse: LICENSE.txt.
"""


def readme(selection: Mapping[str, Any], at: str) -> str:
    """The README of an archive."""
    chosen = ", ".join(f"{name} {value}" for name, value in selection.items() if value is not None)
    return README.format(at=at, selection=chosen or "everything")
