"""REST views of the hash chains and their links. A known head proves that no earlier record was changed."""

from agents.models import Chain, ChainLink
from foundation.rest.serializers import ReadSerializer
from foundation.rest.viewsets import ReadOnlyViewSet


class ChainSerializer(ReadSerializer):
    class Meta:
        model = Chain
        fields = ("protocol", "length", "head")


class ChainViewSet(ReadOnlyViewSet):
    """The hash chains over completed decisions, over completed elicitations and over archives: length and head.

    A link's hash covers the previous hash and a canonical record: of a task its calls, answer, and trades or forecasts;
    of an archive the hash of every table. Archives hold all links and the rows of the records; `verify_export` verifies
    them.
    """

    queryset = Chain.objects.all()
    serializer_class = ChainSerializer
    filterset_fields = ("protocol",)
    lookup_field = "protocol"
    lookup_value_regex = "[a-z]{1,20}"
    orderings = ("protocol", "length")
    ordering = ("protocol",)


class ChainLinkSerializer(ReadSerializer):
    class Meta:
        model = ChainLink
        fields = (
            "id",
            "protocol",
            "sequence",
            "decision",
            "elicitation",
            "record",
            "previous",
            "record_sha256",
            "sha256",
        )


class ChainLinkViewSet(ReadOnlyViewSet):
    """The links of the chains, oldest first: one completed decision, elicitation or archive each."""

    queryset = ChainLink.objects.all()
    serializer_class = ChainLinkSerializer
    filterset_fields = ("protocol", "decision", "elicitation")
    orderings = ("id", "protocol", "sequence")
    ordering = ("protocol", "sequence")
