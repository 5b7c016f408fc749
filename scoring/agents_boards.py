"""The boards of external agents as pages and API read them: the stored one, or that of a past instant."""

from datetime import datetime

from scoring.constants import AGENT_PERIODS, CLOSED
from scoring.models import AgentsBoard

ALL_TIME = next(iter(AGENT_PERIODS))


def read_agents_board(
    protocol: str, *, track: str = CLOSED, period: str = ALL_TIME, at: datetime | None = None
) -> AgentsBoard:
    """The board now or as of an instant; one without entries, not stored, where no agent is in the track."""
    rows = AgentsBoard.objects.filter(track=track, protocol=protocol, period=period)
    if at is not None:
        rows = rows.filter(computed_at=at)  # the stored board is the one as of its own instant
    if stored := rows.first():
        return stored
    key = {"track": track, "protocol": protocol, "period": period}
    if at is None:
        return AgentsBoard(**key, entries=[], report={})
    from scoring.services.agents_boards import BoardKey, agents_board  # loads NumPy

    board = agents_board(BoardKey(**key), at=at, past=True)
    return AgentsBoard(**key, computed_at=at, **board._asdict())
