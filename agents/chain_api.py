"""The chains for readers: a head that was seen once proves for ever what stood before it."""

from agents.models import Chain
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
