"""REST views of the hash chains and their links. A known head proves that no earlier record was changed."""

from agents.models import Chain, ChainLink
from markets.foundation.rest.serializers import ReadSerializer
from markets.foundation.rest.viewsets import ReadOnlyViewSet


class ChainSerializer(ReadSerializer):
    class Meta:
        model = Chain
        fields = ("protocol", "length", "head")


class ChainViewSet(ReadOnlyViewSet):
    """The hash chains over completed decisions and over completed elicitations: length and head.

    A link's hash covers the previous hash and the canonical record of its task: model, prompt, answer, and trades or
    forecasts. Archives hold all links and the rows of the records; `verify_export` verifies them.
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
        fields = ("id", "protocol", "sequence", "decision", "elicitation", "previous", "record_sha256", "sha256")


class ChainLinkViewSet(ReadOnlyViewSet):
    """The links of both chains, oldest first: one completed decision or elicitation each."""

    queryset = ChainLink.objects.all()
    serializer_class = ChainLinkSerializer
    filterset_fields = ("protocol", "decision", "elicitation")
    orderings = ("id", "protocol", "sequence")
    ordering = ("protocol", "sequence")
