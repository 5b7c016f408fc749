"""Runs as the API shows them: what a run tells of answers is left out while these are sealed."""

from datetime import datetime
from typing import Any

from rest_framework.request import Request

from agents.models.sealed_rows import seals_in_force
from foundation.api import RunViewSet

PUBLIC = ("sync_markets", "start_cohort")
"""Kinds of runs that tell nothing of answers. Counts of all others may: of calls, of positions, of rows."""
IDENTITY = frozenset({"kind", "at"})


class PublicRuns(RunViewSet):
    __doc__ = RunViewSet.__doc__

    @property
    def requested(self) -> frozenset[str]:
        return super().requested | IDENTITY if seals_in_force() else super().requested

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        begun_at = seals_in_force().begun_at
        contents = getattr(response, "data", None)
        if begun_at is not None and isinstance(contents, dict):
            for row in contents.get("results", [contents]):
                if row.get("kind") not in PUBLIC and datetime.fromisoformat(row["at"]) >= begun_at:
                    _hide(row)
        return super().finalize_response(request, response, *args, **kwargs)


def _hide(row: dict[str, Any]) -> None:
    """Empties the fields that tell what a run's answers were."""
    hidden: dict[str, Any] = {"summary": {}, "error": None, "log": []}
    row.update({name: value for name, value in hidden.items() if name in row})
