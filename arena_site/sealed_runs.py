"""Runs as the API shows them: what a run tells of answers is left out while these are sealed."""

from typing import Any

from agents.models.sealed_rows import seals_in_force
from markets import api
from markets.foundation.rest.serializers import ReadSerializer

ASKING = ("run_decisions", "run_forecasts", "submission")
"""Kinds of runs whose counts and lines tell of answers."""
IDENTITY = frozenset({"kind", "at"})


class SealedRun(ReadSerializer):
    """Mixin of the serializers of runs."""

    def to_representation(self, instance: Any) -> dict[str, Any]:
        row = super().to_representation(instance)
        begun_at = seals_in_force().begun_at
        if begun_at is None or row["kind"] not in ASKING or row["at"] < begun_at.isoformat().replace("+00:00", "Z"):
            return row
        empty: dict[str, Any] = {"summary": {}, "error": None, "log": []}
        return row | {name: value for name, value in empty.items() if name in row}


class RunSerializer(SealedRun, api.RunSerializer):
    class Meta(api.RunSerializer.Meta):
        pass


class RunDetailSerializer(SealedRun, api.RunDetailSerializer):
    class Meta(api.RunDetailSerializer.Meta):
        pass


class RunViewSet(api.RunViewSet):
    """Runs of jobs and commands: their instant, start, end, status and summary."""

    serializer_class = RunSerializer
    detail_serializer_class = RunDetailSerializer

    @property
    def requested(self) -> frozenset[str]:
        return super().requested | IDENTITY if seals_in_force() else super().requested
