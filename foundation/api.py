"""REST API of runs."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers

from foundation.models import Run
from foundation.rest.serializers import ReadSerializer
from foundation.rest.viewsets import ReadOnlyViewSet
from foundation.run_log import line_texts


class RunSerializer(ReadSerializer):
    class Meta:
        model = Run
        fields: tuple[str, ...] = ("id", "kind", "at", "started_at", "finished_at", "status", "summary", "error")


class RunLogField(serializers.ListField):
    """The lines of a run's log as text."""

    child = serializers.CharField()

    def to_representation(self, log: Any) -> list[str]:
        return line_texts(log)


class RunDetailSerializer(RunSerializer):
    log = RunLogField(read_only=True)

    class Meta(RunSerializer.Meta):
        fields = (*RunSerializer.Meta.fields, "log")


class RunViewSet(ReadOnlyViewSet):
    """Runs of jobs and commands: their instant, start, end, status and summary."""

    queryset = Run.objects.all()
    serializer_class = RunSerializer
    detail_serializer_class = RunDetailSerializer
    filterset_fields = ("kind", "status", "at", "started_at", "finished_at")
    reads_tuples = True
    orderings = ("id", "at", "started_at")
    ordering = ("-started_at",)

    def get_queryset(self) -> Any:
        return Run.objects.as_seen(timezone.now())
