"""REST views of the register of receipts, and of the attempts that led to no accepted answer."""

from rest_framework import serializers

from agents.api.sealed import SealableSerializer, SealableViewSet, SealedUntilField
from agents.models import Attempt, Family, Receipt
from foundation.rest.filters import ReferenceFilter


class ReceiptBodySerializer(serializers.Serializer):
    """The statement of a receipt. Its canonical JSON is hashed and signed."""

    agent = serializers.CharField(help_text="The agent's name: its family's slug.")
    version = serializers.CharField()
    task = serializers.CharField()
    answer_sha256 = serializers.CharField()
    prompt_sha256 = serializers.CharField()
    nonce = serializers.CharField()
    received_at = serializers.CharField(help_text="UTC, with microseconds.")
    sequence = serializers.IntegerField()
    previous = serializers.CharField()


class IssuedReceiptSerializer(serializers.Serializer):
    """A receipt as its agent gets it."""

    body = ReceiptBodySerializer(help_text="The statement that is hashed and signed.")
    sha256 = serializers.CharField()
    signature = serializers.CharField()
    key_id = serializers.CharField(help_text="The key, listed in `/.well-known/arena-chain.json`.")


class ReceiptSerializer(SealableSerializer):
    open_fields = frozenset({"id", "sequence", "sha256", "sealed_until"})
    sealed_until = SealedUntilField()
    body = ReceiptBodySerializer(read_only=True, help_text="The statement that is hashed and signed.")
    key_id = serializers.CharField(read_only=True, help_text="The key, listed in `/.well-known/arena-chain.json`.")

    class Meta:
        model = Receipt
        fields = ("id", "sequence", "body", "sha256", "signature", "key_id", "sealed_until")


class ReceiptViewSet(SealableViewSet):
    """Receipts of accepted answers, each signed and with the hash of the one before it.

    They hold no content of an answer, only its hash; while an answer is sealed, only the receipt's own.
    """

    queryset = Receipt.objects.all()
    serializer_class = ReceiptSerializer
    filterset_fields = ("received_at",)
    filters = {"family": ReferenceFilter(Family, "submission__registration__family", by="slug")}
    orderings = ("id", "sequence", "received_at")
    ordering = ("sequence",)


class AttemptSerializer(SealableSerializer):
    open_fields = frozenset(
        {"id", "family", "agent", "universe", "batch", "kind", "version", "noted_at", "sealed_until"}
    )
    sealed_until = SealedUntilField()
    family = serializers.CharField(source="registration.family.slug", read_only=True)

    class Meta:
        model = Attempt
        fields = (
            "id", "family", "version", "agent", "universe", "batch", "kind", "reason", "noted_at", "sealed_until",
        )  # fmt: skip


class AttemptViewSet(SealableViewSet):
    """Tasks of external agents without an accepted answer, newest first: it was refused, came late, or never came."""

    queryset = Attempt.objects.select_related("registration__family")
    serializer_class = AttemptSerializer
    filterset_fields = ("agent", "universe", "batch", "kind", "noted_at")
    filters = {"family": ReferenceFilter(Family, "registration__family", by="slug")}
    orderings = ("id", "noted_at")
    ordering = ("-pk",)
