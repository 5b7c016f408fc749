"""Named points at which a test can kill the process, as a power cut would.

`ARENA_DIE_AT=call.stored` sends SIGKILL when that point is reached, `call.stored:3` when it is reached for the third
time. Without the variable a point costs one comparison.
"""

import os
import signal

_NAME, _, _COUNT = os.environ.get("ARENA_DIE_AT", "").partition(":")
_countdown = int(_COUNT or 1)

POINTS = (
    *("sync.walked", "sync.stored", "sync.priced"),
    *("universe.priced", "universe.frozen"),
    *("decision.claimed", "call.sent", "call.answered", "call.stored", "decision.traded", "decision.finished"),
    *("questions.priced", "questions.frozen"),
    *("elicitation.claimed", "elicitation.recorded", "elicitation.finished"),
    *("envelope.stored", "envelope.claimed", "envelope.carried_out", "envelope.opened"),
    *("settlement.refreshed", "settlement.paid", "settlement.committed", "settlement.completed"),
    *("scores.scored", "scores.ranked"),
    *("snapshots.marked", "snapshots.recorded"),
)


def failpoint(name: str) -> None:
    """Kills the process if `ARENA_DIE_AT` names this point."""
    global _countdown
    if _NAME and name == _NAME:
        _countdown -= 1
        if _countdown == 0:
            os.kill(os.getpid(), signal.SIGKILL)
