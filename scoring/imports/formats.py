"""Which formats there are, and what a set of files is in one of them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from scoring.imports import forecastbench, gjo, kalshibench, long, polystrat, prophet_csv, prophet_tasks
from scoring.imports.rows import Part

FORMATS: dict[str, Callable[[Sequence[Path]], list[Part]]] = {
    "long": long.parts,
    "gjo": gjo.parts,
    "prophet_csv": prophet_csv.parts,
    "prophet_tasks": prophet_tasks.parts,
    "forecastbench": forecastbench.parts,
    "kalshibench": kalshibench.parts,
    "polystrat": polystrat.parts,
}

NOTES = {
    "gjo": "A problem’s options are read as excluding each other.",
    "prophet_csv": "The markets of an event are read as excluding each other where exactly one came true and "
    "everybody’s probabilities sum to 1, else as two-way questions. An event asked about several times counts once.",
    "prophet_tasks": "The outcomes of a task are read as excluding each other unless another number than one "
    "came true.",
    "forecastbench": "Several people in one file are one forecaster, their median. A market that is not resolved is "
    "scored against its price, a fraction.",
    "kalshibench": "The prompt asked for a confidence. A number counts as the probability of YES only where it agrees "
    "with the answer beside it, and is never turned round. No outcomes are published with the answers.",
    "polystrat": "A forecaster is a model with its tool. One side’s price was paid; the other’s is taken as what is "
    "left of 1. When a market was settled stands for when it closed.",
}
"""What a reader of a board has to know of how its files were read."""
