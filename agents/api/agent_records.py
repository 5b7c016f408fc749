"""Bases of the serializers and views for records of an agent."""

from rest_framework import serializers

from agents.models import Family
from cohorts.models import Cohort
from foundation.rest.filters import ReferenceFilter
from foundation.rest.serializers import ReadSerializer
from foundation.rest.viewsets import ReadOnlyViewSet

AGENT_COLUMNS = ("agent__cohort__number", "agent__family__slug")
"""The columns of the agent that `AgentRecordSerializer` reads."""


class AgentRecordSerializer(ReadSerializer):
    """Base for records of an agent: its cohort and its family."""

    cohort = serializers.IntegerField(source="agent.cohort.number", read_only=True)
    family = serializers.CharField(source="agent.family.slug", read_only=True)


class AgentRecordViewSet(ReadOnlyViewSet):
    """Base of the views of such records: filters for cohort and family besides its own fields."""

    filters = {
        "cohort": ReferenceFilter(Cohort, "agent__cohort", by="number"),
        "family": ReferenceFilter(Family, "agent__family", by="slug"),
    }
