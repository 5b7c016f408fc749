"""Evaluates an agent on a dataset: it answers the tasks of the past, and `forecast_rank` scores it beside the models.

The agent's process is handed the lines of the tasks alone. Questions asked in several tasks count once: each forecast
weighs one part of them, as on the arena's board.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arena_agent.agent import Agent
from arena_agent.blocks import UnreadableBlock, read_questions
from arena_agent.canonical import file_sha256, read_json, sha256
from arena_agent.dataset import TASKS, Dataset, InvalidDataset
from arena_agent.in_process import AgentThread, AnyAgent, open_agent
from arena_agent.reports import EvaluationReport
from arena_agent.worker import AgentEnded, AgentLate, AgentProcess

if TYPE_CHECKING:
    import polars as pl

METRICS = ("brier", "alpha", "adjusted_brier")
FIGURES = ("n", "coverage", "brier", "brier_ci", "alpha", "alpha_ci", "adjusted_brier", "adjusted_brier_ci")
FAULTS_SHOWN = 20
TASKS_AHEAD = 32
CAUTION = "These questions are of the past: the agent's model may know what happened."
ROWS, REPORT = "forecasts.csv", "report.json"


class NothingToScore(Exception):
    """The agent gave no forecast that can be scored."""


def evaluate_on(
    agent: AnyAgent,
    dataset: Dataset,
    out: Path,
    *,
    condition: str = "",
    workers: int = 1,
    seconds: float = 900.0,
    progress: Callable[[int], None] = lambda count: None,
) -> EvaluationReport:
    """The report of an agent on a dataset; writes it and the scored rows into `out`.

    The agent is handed the tasks of one prompt condition, since scores of several are not comparable: the one named,
    else that of the arena's board. Raises UnusableAgent, InvalidDataset or NothingToScore.
    """
    condition = condition or dataset.board_condition
    with open_agent(agent) as runner:
        card = runner.card()
    out.mkdir(parents=True, exist_ok=True)
    results = _ask_all(agent, _read_tasks(dataset, condition), workers, seconds, progress)
    faults = _write_rows(out / ROWS, card.name, dataset, results)
    report = EvaluationReport(score(out / ROWS, card.name))
    report |= {
        "agent": card.name,
        "track": card.track,
        "dataset": dataset.sha256,
        "condition": condition or None,
        "names": dataset.names,
        "faults": {"count": len(faults), "first": faults[:FAULTS_SHOWN]},
        "caution": CAUTION,
        "cost_usd": sum(result.cost_usd for result in results.values()),
    }
    figures = {name: report[name] for name in (*FIGURES, "pairs")}
    report["digest"] = sha256({"dataset": dataset.sha256, "rows": file_sha256(out / ROWS), "figures": figures})
    (out / REPORT).write_text(report_text(report), encoding="utf-8")
    return report


def report_text(report: EvaluationReport) -> str:
    """A report as the text of `report.json`."""
    return json.dumps(report, indent=1, allow_nan=False) + "\n"


def score(rows: Path, agent: str) -> dict[str, Any]:
    """The figures of an agent among the forecasters of a file, as `forecast_rank.rank` gives them.

    Raises NothingToScore.
    """
    import forecast_rank

    try:
        content = forecast_rank.rank(rows, metrics=METRICS).to_dict()
    except forecast_rank.TooFewForecasts as error:
        raise NothingToScore(f"the rows of the dataset can not be scored: {error}") from None
    agent_figures = content["forecasters"].get(agent)
    if agent_figures is None:
        raise NothingToScore(f"no row of {agent} can be scored: {content['rejected'][0]['why']}")
    pairs = [pair for pair in content["pairs"] if agent in (pair["first"], pair["second"])]
    rivals = {name: _figures(figures) for name, figures in content["forecasters"].items() if name != agent}
    return _figures(agent_figures) | {
        "pairs": pairs,
        "forecasters": rivals,
        "references": {name: _figures(figures) for name, figures in content["references"].items()},
        "rejected": len(content["rejected"]),
    }


def _figures(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {name: figures.get(name) for name in FIGURES}


# --- asking ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _AskedTask:
    """A task that the agent was handed."""

    number: int
    name: str
    line: str
    options: list[tuple[Any, ...]]


@dataclass
class _TaskResult:
    """The options of a task, the agent's probabilities, and the faults of its answer."""

    options: list[tuple[Any, ...]]
    probabilities: list[tuple[Any, ...]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    cost_usd: float = 0.0


def _ask_all(
    agent: AnyAgent, tasks: Iterator[_AskedTask], workers: int, seconds: float, progress: Callable[[int], None]
) -> dict[int, _TaskResult]:
    """The results by the number of the task."""
    lock = threading.Lock()
    results: dict[int, _TaskResult] = {}
    errors: list[BaseException] = []

    def take() -> _AskedTask | None:
        with lock:
            return None if errors else next(tasks, None)

    def work() -> None:
        try:
            with open_agent(agent) as runner:
                for number, result in _answer_in_turn(runner, take, seconds):
                    results[number] = result
                    progress(len(results))
                    if errors:
                        return
        except BaseException as error:
            errors.append(error)

    if isinstance(agent, Agent):  # one object answers one task at a time
        workers = 1
    threads = [threading.Thread(target=work, daemon=True) for _ in range(max(1, workers))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt as error:
        errors.append(error)
        raise
    if errors:
        raise errors[0]
    return results


def _answer_in_turn(
    runner: AgentProcess | AgentThread, take: Callable[[], _AskedTask | None], seconds: float
) -> Iterator[tuple[int, _TaskResult]]:
    """The results of one process, which is handed some tasks ahead so that it never waits for the next."""
    waiting: deque[_AskedTask] = deque()
    while True:
        while len(waiting) < TASKS_AHEAD and (task := take()) is not None:
            runner.send(task.line)
            waiting.append(task)
        if not waiting:
            return
        task = waiting.popleft()
        result = _TaskResult(task.options)
        try:
            answer = runner.receive(seconds)
        except (AgentLate, AgentEnded) as error:
            result.faults.append(f"{task.name}: {error}")
            for next_task in waiting:
                runner.send(next_task.line)
        else:
            result.cost_usd = answer.cost_usd
            result.faults += [f"{task.name}: {fault}" for fault in answer.faults]
            for question, vector in answer.probabilities.items():
                result.probabilities += [(task.name, question, option, value) for option, value in vector.items()]
        yield task.number, result


def _read_tasks(dataset: Dataset, condition: str) -> Iterator[_AskedTask]:
    """The forecast tasks of a condition; of all where none is named. Raises InvalidDataset at a line that is no task,
    and after the last one if the condition has none.
    """
    conditions: set[str] = set()
    count = 0
    for number, line in enumerate(dataset.task_lines(), start=1):
        try:
            record = read_json(line)
            name, blocks = str(record["task"]), record["blocks"]
            if "QUESTIONS" not in blocks:
                continue
            if condition and record.get("arm", condition) != condition:
                conditions.add(str(record["arm"]))
                continue
            questions = read_questions(blocks)
        except (ValueError, KeyError, TypeError) as error:
            kind = "" if isinstance(error, UnreadableBlock) else f"{type(error).__name__}: "
            raise InvalidDataset(f"{TASKS}, line {number}: {kind}{error}") from None
        options = [
            (name, question.id, option, int(question.exclusive), (question.prices or {}).get(option))
            for question in questions
            for option in question.options
        ]
        count += 1
        yield _AskedTask(number, name, line, options)
    if not count and conditions:
        raise InvalidDataset(
            f"{TASKS}: no task is of the condition {condition}; there are {', '.join(sorted(conditions))}"
        )


def _columns(
    results: dict[int, _TaskResult],
) -> tuple[dict[str, list[Any]], dict[str, list[Any]], list[str]]:
    """The options and the probabilities in the order of the tasks, as columns; and all faults."""
    options: list[tuple[Any, ...]] = []
    probabilities: list[tuple[Any, ...]] = []
    faults: list[str] = []
    for number in sorted(results):
        options += results[number].options
        probabilities += results[number].probabilities
        faults += results[number].faults
    option_columns = _transposed(options, ("task", "question_id", "option", "exclusive", "price"))
    return option_columns, _transposed(probabilities, ("task", "question_id", "option", "probability")), faults


def _transposed(rows: list[tuple[Any, ...]], names: tuple[str, ...]) -> dict[str, list[Any]]:
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in names]
    return dict(zip(names, columns, strict=True))


# --- rows ------------------------------------------------------------------------------------------------


def _write_rows(path: Path, agent: str, dataset: Dataset, results: dict[int, _TaskResult]) -> list[str]:
    """Writes the rows to be scored; returns all faults. What was asked need not stay in memory for the scoring."""
    options, probabilities, faults = _columns(results)
    table = _long_form(dataset, options, probabilities, agent)
    if not table.height or agent not in table["forecaster"]:
        raise NothingToScore(f"{agent} gave no forecast that can be scored: {'; '.join(faults[:3]) or 'none'}")
    table.write_csv(path)
    return faults


def _long_form(
    dataset: Dataset, scored_columns: dict[str, list[Any]], answer_columns: dict[str, list[Any]], agent: str
) -> pl.DataFrame:
    """The rows to be scored: the agent's and everyone's, of the questions that have an outcome."""
    import polars as pl

    key = ["task", "question_id", "option"]
    texts: dict[str, Any] = dict.fromkeys(key, pl.String)
    options = pl.DataFrame(scored_columns, schema=texts | {"exclusive": pl.Int8, "price": pl.Float64})
    repeated = options.group_by("task", "question_id", "option").len().filter(pl.col("len") > 1)
    if repeated.height:
        task, question = repeated.sort(key).row(0)[:2]
        raise InvalidDataset(f"{TASKS}: the task {task} asks question {question} twice")
    # Sorted by name, questions stand in the order in which they were asked: sums are those of the arena's board.
    place = pl.struct("task", "question_id").rle_id().cast(pl.String).str.zfill(7)
    resolved = _with_outcomes(options.with_columns(place.alias("place")), dataset)
    agent_forecasts = pl.DataFrame(answer_columns, schema=texts | {"probability": pl.Float64}).insert_column(
        0, pl.lit(agent).alias("forecaster")
    )
    try:
        dataset_forecasts = pl.read_parquet(dataset.forecasts, columns=["forecaster", *key, "probability"])
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InvalidDataset(f"{dataset.forecasts}: {str(error).splitlines()[0]}") from None
    dataset_forecasts = dataset_forecasts.cast(
        dict(dataset_forecasts.schema) | texts | {"forecaster": pl.String, "probability": pl.Float64}
    )
    if agent in dataset_forecasts["forecaster"]:
        raise InvalidDataset(f"{agent!r} is the name of a forecaster of this dataset: give the agent another name")
    rows = pl.concat([agent_forecasts, dataset_forecasts.sort("forecaster", maintain_order=True)]).join(
        resolved, on=key, how="inner", maintain_order="left"
    )
    times_asked = rows.group_by("forecaster", "question_id").agg(pl.col("task").n_unique().alias("times"))
    rows = rows.join(times_asked, on=["forecaster", "question_id"], maintain_order="left")
    return rows.select(
        "forecaster",
        pl.concat_str("place", "task", "question_id", separator="/").alias("question"),
        "option",
        "probability",
        "outcome",
        _bettable("odds"),
        _bettable("no_odds"),
        "quote",
        "event",
        "category",
        (1 / pl.col("times")).alias("weight"),
        "exclusive",
    )


def _bettable(name: str) -> pl.Expr:
    """A price at which a dollar can be bet, else null."""
    import polars as pl

    return pl.when((pl.col(name) > 0) & (pl.col(name) < 1)).then(pl.col(name)).alias(name)


def _with_outcomes(options: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
    """The options whose question has an outcome, with it, its event and category, and the odds."""
    import polars as pl

    columns: dict[str, Any] = {
        "task": pl.String, "question_id": pl.String, "option": pl.String, "outcome": pl.Int8, "category": pl.String,
        "event": pl.String, "odds": pl.Float64, "no_odds": pl.Float64, "quote": pl.Float64,
    }  # fmt: skip

    def rows() -> Iterator[list[Any]]:
        for row in dataset.outcomes():
            values = [row.get(name) for name in columns]
            if values[3] not in (0, 1):
                raise InvalidDataset(f"outcomes.jsonl: the outcome of question {values[1]} must be 0 or 1")
            yield [None if value is None else str(value) for value in values[:3]] + values[3:]

    try:
        outcomes = pl.DataFrame(list(rows()), schema=columns, orient="row", strict=False)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        if isinstance(error, InvalidDataset):
            raise
        raise InvalidDataset(f"outcomes.jsonl: {str(error).splitlines()[0]}") from None
    by_task = outcomes.filter(pl.col("task").is_not_null())
    by_question = outcomes.filter(pl.col("task").is_null()).drop("task")
    joined = pl.concat(
        [
            options.join(by_task, on=["task", "question_id", "option"], how="inner", maintain_order="left"),
            options.join(by_question, on=["question_id", "option"], how="inner", maintain_order="left"),
        ]
    )
    return joined.with_columns(
        pl.coalesce("odds", "price").alias("odds"),
        pl.coalesce("quote", "price").alias("quote"),
        pl.coalesce("event", "question_id").alias("event"),
    ).drop("price")
