"""The paired differences between the conditions of one model."""

import math
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

from arena_verifier.forecast_leaderboards import answered_entries, asked_arms
from arena_verifier.rows import Row, Tables, Violations, mismatches
from arena_verifier.scores import QuestionRecords


def check_condition_differences(tables: Tables, violations: Violations) -> None:
    """Each pair of conditions that a model answered the same entries under has its row, with its mean difference."""
    records, families = QuestionRecords(tables), tables.by("families", "slug")
    scores: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for arm in asked_arms(tables):
        for item in answered_entries(tables, records, arm):
            for family, vector in item.vectors.items():
                if not families[family]["external"]:
                    scores[family][arm][item.entry["id"]] = records.score(vector, item.entry).brier
    rows = {}
    for row in tables.rows("condition_differences"):
        rows[row["family"], frozenset((row["condition_a"], row["condition_b"]))] = row
    for family, by_arm in scores.items():
        for first, second in combinations(by_arm, 2):
            key = family, frozenset((first, second))
            if not by_arm[first].keys() & by_arm[second].keys():
                continue
            archived = rows.pop(key, None)
            if archived is None:
                violations.append(f"condition_differences: {family} {first} {second} is missing")
                continue
            pair = by_arm[archived["condition_a"]], by_arm[archived["condition_b"]]
            name = f"condition_differences: {family} {archived['condition_a']} {archived['condition_b']}"
            violations.extend(mismatches(name, archived, paired_figures(*pair, records)))
    for family, names in rows:
        violations.append(f"condition_differences: {family} {' '.join(sorted(names))} has no common forecasts")


def paired_figures(first: dict[int, float], second: dict[int, float], records: QuestionRecords) -> Row:
    """The mean difference on common entries; each of k forecasts of a question weighs 1/k, a pair the mean of two."""
    question_of: dict[int, Any] = {pk: records.entries[pk]["question"] for pk in first.keys() | second.keys()}
    counts = [Counter(question_of[pk] for pk in scores) for scores in (first, second)]
    common = sorted(first.keys() & second.keys())
    weights, products = [], []
    for pk in common:
        weights.append(math.fsum(1 / times[question_of[pk]] for times in counts) / 2)
        products.append(weights[-1] * (first[pk] - second[pk]))
    questions = {question_of[pk] for pk in common}
    return {
        "n": len(questions), "forecasts": len(common),
        "events": len({records.questions[question]["event_key"] for question in questions}),
        "difference": math.fsum(products) / math.fsum(weights),
    }  # fmt: skip
