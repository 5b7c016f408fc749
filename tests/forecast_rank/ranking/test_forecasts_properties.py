"""The reader beside a second one that follows the rules row by row, slowly, on files full of faults."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forecast_rank.ranking.forecasts import read_forecasts
from tests.forecast_rank.panels import stated_probabilities
from tests.selection import examples

CLOSED = "2026-01-05T00:00:00Z"
ROW = st.fixed_dictionaries(
    {
        "forecaster": st.sampled_from(["ann", "ann", "bob", "cy", ""]),
        "question": st.sampled_from(["q1", "q1", "q2", "q3"]),
        "option": st.sampled_from(["a", "b", "c"]),
        "probability": st.sampled_from([0.5, 0.5, 0.5, 0.25, 0.0, 1.0, 1.5, None]),
        "outcome": st.sampled_from([1, 0, 0, 2, None]),
    },
    optional={
        "odds": st.sampled_from([0.5, 0.4, None, 1.0]),
        "exclusive": st.sampled_from([1, 1, 0, None]),
        "weight": st.sampled_from([1.0, 1.0, 2.0, 0.0]),
        "made_at": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-06T00:00:00Z", None]),
        "closed_at": st.sampled_from([CLOSED, None]),
    },
)


COLUMNS = (
    *("forecaster", "question", "option", "probability", "outcome"),
    *("odds", "exclusive", "weight", "made_at", "closed_at"),
)


@st.composite
def files(draw: st.DrawFn) -> list[dict]:
    """Rows of which many make whole forecasts, and some are changed, lost or repeated."""
    rows = draw(st.lists(ROW, max_size=4))
    for forecaster in ("ann", "bob", "cy", "dan"):
        for question, options, won in (("q1", "ab", 0), ("q2", "a", 0), ("q3", "abc", 1)):
            made_at = draw(
                st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-06T00:00:00Z"])
            )
            vectors = draw(st.sampled_from([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [1.0, 0.0, 0.0]]))
            shares = vectors[: len(options) - 1] + [1 - sum(vectors[: len(options) - 1])]
            winner = won if draw(st.integers(0, 7)) else won + 1
            for k, option in enumerate(options):
                row = {"forecaster": forecaster, "question": question, "option": option, "made_at": made_at}
                row |= {"probability": shares[k] if len(options) > 1 else vectors[0], "outcome": int(k == winner)}
                if draw(st.integers(0, 15)):
                    rows.append(row | draw(st.sampled_from([{}, {"closed_at": CLOSED}])))
    rows += draw(st.lists(st.sampled_from(rows), max_size=2)) if rows else []
    return list(draw(st.permutations(rows)))


def by_rule(rows: list[dict]) -> tuple[dict, set[int]]:
    """What counts and which rows (from 1) do not, one rule after another as they are written."""
    faulty = set()
    for k, row in enumerate(rows, start=1):
        weight, odds, p = row.get("weight", 1), row.get("odds"), row["probability"]
        faulty |= {
            k
            for bad in (
                row["forecaster"] == "",
                p is None or not 0 <= p <= 1,
                row["outcome"] not in (0, 1),
                odds is not None and not 0 < odds < 1,
                weight <= 0,
            )
            if bad
        }
    pairs: dict[tuple[str, str], dict[str, list[int]]] = {}
    keys_so_far = set()
    for k, row in enumerate(rows, start=1):
        row_key = tuple(map(row.get, COLUMNS))
        if row["forecaster"] and row_key not in keys_so_far:
            keys_so_far.add(row_key)
            versions = pairs.setdefault((row["question"], row["forecaster"]), {})
            versions.setdefault(row.get("made_at") or "", []).append(k)

    def cells(places: list[int], name: str, usual: object = None) -> list:
        return [usual if rows[k - 1].get(name) is None else rows[k - 1][name] for k in places]

    for forecasts in pairs.values():
        for places in forecasts.values():
            options = cells(places, "option")
            faulty |= {k for n, k in enumerate(places) if options[n] in options[:n]}
        for places in forecasts.values():
            if faulty & set(places):
                continue
            flags, weights = set(cells(places, "exclusive", 1)), set(cells(places, "weight", 1.0))
            off = len(flags) > 1 or len(weights) > 1
            if flags == {1} and len(places) > 1:
                off |= abs(sum(cells(places, "probability")) - 1) > 1e-6 or sum(cells(places, "outcome")) != 1
            faulty |= set(places) if off else set()

    closes = {row["question"]: CLOSED for row in rows if row["forecaster"] and row.get("closed_at") is not None}
    latest, bad = {}, set()
    for (question, forecaster), forecasts in pairs.items():
        in_time = [at for at in forecasts if not (at and closes.get(question) and at >= CLOSED)]
        if in_time and not faulty & set(forecasts[max(in_time)]):
            latest[question, forecaster] = forecasts[max(in_time)]
        else:
            bad.add((question, forecaster))

    def version(places: list[int]) -> tuple:
        told_outcomes = sorted(zip(cells(places, "option"), cells(places, "outcome"), strict=True))
        return tuple(told_outcomes), len(places) > 1 and cells(places, "exclusive", 1)[0] == 1

    for question in {question for question, _ in latest}:
        voices: dict[tuple, set[tuple[str, str]]] = {}
        for pair, places in latest.items():
            if pair[0] == question:
                voices.setdefault(version(places), set()).add(pair)
        most = max(map(len, voices.values()))
        leading = [supporters for supporters in voices.values() if len(supporters) == most]
        for supporters in voices.values():
            if len(leading) > 1 or supporters is not leading[0]:
                bad |= supporters

    accepted = {
        (forecaster, question): dict(zip(cells(places, "option"), cells(places, "probability"), strict=True))
        for (question, forecaster), places in latest.items()
        if (question, forecaster) not in bad
    }
    for pair, forecasts in pairs.items():
        for places in forecasts.values():
            if pair in bad or faulty & set(places):
                faulty |= set(places)
    return accepted, faulty


@settings(max_examples=examples(150), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(rows=files())
def test_the_fast_reader_follows_the_rules(rows: list[dict], tmp_path_factory: pytest.TempPathFactory) -> None:
    if not rows:
        return
    path = tmp_path_factory.getbasetemp() / "ruled.jsonl"
    # A column of nothing but holes would count as missing.
    rows = [*rows, {"forecaster": "zed", "question": "q9", "option": "YES", "probability": 0.5, "outcome": 1}]
    path.write_text("\n".join(map(json.dumps, rows)))
    reading = read_forecasts(path)
    accepted, rejected = by_rule(rows)
    assert stated_probabilities(reading.panel) == accepted
    assert {item.row for item in reading.rejected} == rejected
