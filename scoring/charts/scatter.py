"""Points in a square from 0 to 1 both ways, such as stakes over stated probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass

from scoring.charts.marks import readable, shape

SIDE, EDGE = 200, 24


@dataclass(frozen=True, slots=True)
class Scatter:
    """A square diagram: filled shapes are what came true, hollow ones what did not or is still open."""

    name: str
    color: str
    side: int
    near: float
    far: float
    filled: str
    hollow: str
    points: int


def scatter_chart(name: str, color: str, points: Sequence[tuple[float, float, bool | None]], mark: int = 0) -> Scatter:
    """The diagram of (to the right, upwards, did it come true?)."""

    def place(share: float) -> float:
        return EDGE + share * (SIDE - 2 * EDGE)

    paths = {True: [], False: []}  # type: dict[bool, list[str]]
    for right, up, came_true in points:
        paths[came_true is True].append(shape(mark, place(right), SIDE - place(up), 3))
    filled, hollow = ("".join(paths[came_true]) for came_true in (True, False))
    return Scatter(name, readable(color), SIDE, EDGE, SIDE - EDGE, filled, hollow, len(points))
