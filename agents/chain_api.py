"""The chains for readers: a head that was seen once proves for ever what stood before it."""

from rest_framework import serializers

from agents.models import Chain, ChainLink
from markets.rest import Filters, Row, Rows


class ChainRow(Row):
    class Meta:
        model = Chain
        fields = ("protocol", "length", "head")


class ChainFilters(Filters):
    class Meta:
        model = Chain
        fields = {"protocol": ["exact"]}


class Chains(Rows):
    """The hash chain over all decisions, and that over all elicitations: how long it is and how it ends.

    A link's hash is over the one before it and over the canonical record of who was asked what, what was answered and
    what was executed or stated. Archives hold all links and the records' rows, and `verify_export` follows them.
    """

    queryset = Chain.objects.all()
    serializer_class = ChainRow
    filterset_class = ChainFilters
    lookup_field = "protocol"
    lookup_value_regex = "[a-z]{1,20}"
    orderings = {"protocol": "protocol", "length": "length"}
    ordering = ("protocol",)


class ChainLinkRow(Row):
    previous = serializers.CharField(read_only=True, help_text="The hash of the link before it; zeros for the first.")
    record_sha256 = serializers.CharField(read_only=True, help_text="SHA-256 of the canonical record of its task.")
    sha256 = serializers.CharField(
        read_only=True, help_text="SHA-256 of the previous hash, a line feed and the record's hash."
    )

    class Meta:
        model = ChainLink
        fields = ("id", "protocol", "sequence", "decision", "elicitation", "previous", "record_sha256", "sha256")


class ChainLinkFilters(Filters):
    class Meta:
        model = ChainLink
        fields = {"protocol": ["exact"], "decision": ["exact"], "elicitation": ["exact"]}


class ChainLinks(Rows):
    """The links of both chains, from the first on: each holds one completed decision or one completed elicitation."""

    queryset = ChainLink.objects.all()
    serializer_class = ChainLinkRow
    filterset_class = ChainLinkFilters
    orderings = {"id": "pk", "protocol": "protocol", "sequence": "sequence"}
    ordering = ("protocol", "sequence")
