"""Named places at which a test may kill the process, as a power cut would. Off, they cost one comparison.

`ARENA_DIE_AT=call.stored` kills (SIGKILL) when that point is reached, `call.stored:3` when it is for the third time.
"""

import os
import signal

_NAME, _, _COUNT = os.environ.get("ARENA_DIE_AT", "").partition(":")
_left = int(_COUNT or 1)

POINTS = (
    *("sync.walked", "sync.stored", "sync.priced"),
    *("universe.priced", "universe.frozen"),
    *("decision.claimed", "call.sent", "call.answered", "call.stored", "decision.traded", "decision.finished"),
    *("questions.priced", "questions.frozen"),
    *("elicitation.claimed", "elicitation.recorded", "elicitation.finished"),
    *("settlement.refreshed", "settlement.paid", "settlement.committed", "settlement.completed"),
    *("scores.scored", "scores.ranked"),
    *("snapshots.marked", "snapshots.recorded"),
)


def reached(point: str) -> None:
    """Marks a step boundary."""
    if _NAME and point == _NAME:
        _die_if_due()


def _die_if_due() -> None:
    global _left
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
