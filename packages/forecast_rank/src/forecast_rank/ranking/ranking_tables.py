"""The table of each ranking: its columns, the forecasters in order, and the references in their places."""

from collections.abc import Callable, Iterator
from typing import Any

from forecast_rank.ranking.names import distinct_names
from forecast_rank.ranking.settings import ARENA_EVALUATION, PM_RANK
from forecast_rank.ranking.tables import Entry, FigureColumn, ReportTable

BEST = "*"
LOWER_IS_BETTER = {PM_RANK: ("calibration",), ARENA_EVALUATION: ("brier", "ece")}
"""The figures of other packages of which the lowest is marked; of all others the highest."""


def ranking_columns(report: dict[str, Any]) -> Iterator[tuple[str, str, list[FigureColumn]]]:
    """Title, ranking and columns of every table of a ranking."""
    if report["settings"]["like"]:
        lower = LOWER_IS_BETTER[report["settings"]["like"]]
        columns = [FigureColumn(name.replace("_", " "), name, lower=name in lower) for name in report["rankings"]]
        yield f"By the definitions of {report['settings']['like']}, in order of its Brier score", "brier", columns
        return
    level = f"{report['settings']['level']:.0%}"
    yield (
        f"Brier score, mean form, lower is better [{level} interval]",
        "brier",
        [
            FigureColumn("n", "n", lower=None),
            FigureColumn("coverage", "coverage", 3, lower=None),
            FigureColumn("Brier", "brier", lower=True, interval=True),
            FigureColumn("ranks", "rank_range", lower=None),
            FigureColumn("sum form", "brier_sum", lower=True),
            FigureColumn("skill, uniform", "bss_uniform"),
            FigureColumn("skill, market", "bss_market"),
        ],
    )
    clip = report["settings"]["log_clip"]
    yield (
        f"Log score, natural, clipped at {clip:g}; higher is better",
        "log",
        [
            FigureColumn("log", "log", interval=True),
            _ranks("log"),
            FigureColumn("infinite", "infinite_losses", lower=True),
        ],
    )
    for name, title in (("spherical", "Spherical score"), ("accuracy", "Accuracy of the top option")):
        yield f"{title}, higher is better", name, [FigureColumn(name, name, interval=True), _ranks(name)]
    yield (
        f"Ranked probability score, options in the order of {_option_order(report)}, lower is better",
        "ranked_probability",
        [FigureColumn("RPS", "ranked_probability", lower=True, interval=True), _ranks("ranked_probability")],
    )
    yield (
        "Area under the ROC curve, higher is better",
        "auc",
        [FigureColumn("AUC", "auc", 3, interval=True), _ranks("auc")],
    )
    for gamma in report["settings"]["gammas"]:
        yield (
            f"Averaged return per dollar, gross, at risk aversion {gamma}; log wealth and certain: cash allowed",
            f"average_return:{gamma}",
            [
                FigureColumn("return", "average_return", under=gamma, interval=True),
                _ranks(f"average_return:{gamma}"),
                FigureColumn("log wealth", "log_wealth", under=gamma, interval=True),
                FigureColumn("certain", "certainty_equivalent", under=gamma),
                FigureColumn("ruins", "ruins", under=gamma, lower=True),
            ],
        )
    yield (
        "Alpha: Brier score of the market less the forecaster's, at the prices seen; higher is better",
        "alpha",
        [FigureColumn("alpha", "alpha", interval=True), _ranks("alpha")],
    )
    yield (
        "Calibration: expected calibration error (ECE), lower is better",
        "calibration",
        [
            FigureColumn("ECE", "ece", lower=True, interval=True),
            _ranks("calibration"),
            FigureColumn("noise floor", "ece_noise_floor", lower=None),
            FigureColumn("debiased", "ece_debiased", lower=True),
            FigureColumn("largest", "max_calibration_error", lower=True),
            FigureColumn("MCB", "corp", under="miscalibration", lower=True),
            FigureColumn("DSC", "corp", under="discrimination"),
            FigureColumn("sharpness", "sharpness", lower=None),
        ],
    )
    yield from _model_columns()


def _model_columns() -> Iterator[tuple[str, str, list[FigureColumn]]]:
    yield (
        "Difficulty-adjusted Brier score: forecaster effect + mean question effect; lower is better",
        "adjusted_brier",
        [
            FigureColumn("coverage", "coverage", 3, lower=None),
            FigureColumn("adjusted", "adjusted_brier", lower=True, interval=True),
            _ranks("adjusted_brier"),
            FigureColumn("raw", "brier", lower=True),
        ],
    )
    yield (
        "Brier score weighted by the questions' discrimination, cross-fitted; lower is better",
        "weighted_brier",
        [FigureColumn("weighted", "weighted_brier", lower=True, interval=True), _ranks("weighted_brier")],
    )
    yield (
        "Thurstone–Mosteller: ability by margins on common questions, in deviations of a score difference",
        "thurstone_mosteller",
        [
            FigureColumn("ability", "tm_ability", 3, interval=True),
            _ranks("thurstone_mosteller"),
            FigureColumn("pool weight", "pool_weight", 3, lower=None),
        ],
    )
    yield (
        "Bradley–Terry: ability by wins on common questions, whatever the margin; a pool weight is no ability",
        "bradley_terry",
        [
            FigureColumn("ability", "bt_ability", 3, interval=True),
            _ranks("bradley_terry"),
            FigureColumn("pool weight", "pool_weight", 3, lower=None),
        ],
    )
    yield (
        "Item response theory (two parameters, continuous): ability",
        "irt",
        [FigureColumn("ability", "irt_ability", 3, interval=True), _ranks("irt")],
    )


def _option_order(report: dict[str, Any]) -> str:
    return str(report["settings"].get("option_order", "the file"))


def _ranks(ranking: str) -> FigureColumn:
    return FigureColumn("ranks", "rank_ranges", under=ranking, lower=None)


def ranking_table(report: dict[str, Any], ranking: str, title: str, columns: list[FigureColumn]) -> ReportTable:
    """A ranking in order; equals share a rank, and each reference stands in its place without one.

    Forecasters with too few questions for a rank come last.
    """
    lead = next(column for column in columns if column.lower is not None)
    forecasters: dict[str, Entry] = report["forecasters"]
    order = report["rankings"][ranking]
    best = {column.heading: _best_text(column, {name: forecasters[name] for name in order}) for column in columns}
    values = [lead.value(forecasters[name]) for name in order]
    rows: list[tuple[str, str, Entry]] = [
        ("–" if value is None else str(1 + values.index(value)), name, forecasters[name])
        for name, value in zip(order, values, strict=True)
    ]
    ranked = set(order)
    unranked = [("–", name, entry) for name, entry in forecasters.items() if name not in ranked]
    for name, entry in report["references"].items():
        rows.insert(_insertion_index(rows, lead, entry), ("", f"({name})", entry))
    cells = []
    written = distinct_names(name for _, name, _ in [*rows, *unranked])
    for rank, name, entry in [*rows, *unranked]:
        texts = [column.text(entry) for column in columns]
        if name in ranked and rank:  # references and the unranked are never marked as the best
            texts = [t + BEST * (t == best[column.heading]) for t, column in zip(texts, columns, strict=True)]
        cells.append([rank, written[name], *texts])
    header = ["#", "", *(column.heading for column in columns)]
    return ReportTable(ranking, title, header, cells, text_columns=frozenset({1}), names=1)


def _insertion_index(rows: list[tuple[str, str, Entry]], lead: FigureColumn, entry: Entry) -> int:
    """The index of the first row that is worse than `entry` in the column `lead`, or has no figure."""
    figure = lead.value(entry)
    if figure is None:
        return len(rows)
    for index, (_, _, rival) in enumerate(rows):
        value = lead.value(rival)
        if value is None or (value > figure if lead.lower else value < figure):
            return index
    return len(rows)


def _best_text(column: FigureColumn, forecasters: dict[str, Entry]) -> str | None:
    """The best figure of a column as text; None if all are equal or fewer than two are known."""
    with_value = [entry for entry in forecasters.values() if column.value(entry) is not None]
    if column.lower is None or len(with_value) < 2:
        return None
    if all(column.value(entry) == column.value(with_value[0]) for entry in with_value):
        return None
    choose: Callable[..., Entry] = min if column.lower else max
    return column.text(choose(with_value, key=column.value))
