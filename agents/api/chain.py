"""REST views of the hash chains, their links and envelopes. A known head proves that no earlier record was changed."""

from agents.api.sealed import SealableSerializer, SealableViewSet
from agents.models import Chain, ChainLink, Envelope
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
            "envelope",
            "record",
            "previous",
            "record_sha256",
            "sha256",
        )


class ChainLinkViewSet(ReadOnlyViewSet):
    """The links of the chains, oldest first: one completed decision, elicitation, envelope or archive each."""

    queryset = ChainLink.objects.all()
    serializer_class = ChainLinkSerializer
    filterset_fields = ("protocol", "decision", "elicitation", "envelope")
    orderings = ("id", "protocol", "sequence")
    ordering = ("protocol", "sequence")


class EnvelopeSerializer(SealableSerializer):
    """An envelope, without its content until its task is answered no more."""

    open_fields = frozenset({"id", "decision", "elicitation", "number", "state", "sealed_until", "sha256", "opened_at"})

    class Meta:
        model = Envelope
        fields = (
            "id", "decision", "elicitation", "number", "state", "sealed_until", "sha256", "received_at", "nonce",
            "verdict", "opened_at",
        )  # fmt: skip


class EnvelopeViewSet(SealableViewSet):
    """Answers that came while an external agent could still answer the same, newest first.

    Until the seal ends there is the hash of each, which covers 32 random bytes; then what was judged when it came, and
    that took effect at `opened_at`. An agent may replace its answer: the last one is opened.
    """

    queryset = Envelope.objects.all()
    serializer_class = EnvelopeSerializer
    filterset_fields = ("decision", "elicitation", "state", "received_at", "sealed_until", "opened_at")
    orderings = ("id",)
    ordering = ("-pk",)
