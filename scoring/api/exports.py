"""The public archives: a list of the nightly zip files with their checksums."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.rest.viewsets import extend_schema
from scoring.api.base import ComputedListViewSet
from scoring.exports.public_archives import published_archives


class ExportSerializer(serializers.Serializer):
    """A public archive: everything up to a night, as CSV and Parquet."""

    day = serializers.DateField(help_text="The day whose night it was built in.")
    bytes = serializers.IntegerField(help_text="Size of the zip file.")
    sha256 = serializers.CharField(help_text="Hash of the zip file.")
    file = serializers.CharField(help_text="Path of the zip file.")


class ExportViewSet(ComputedListViewSet):
    """The public archives, newest first: the last seven, and the first of each month for ever.

    `verify_export`, or `verify_arena.py` in the archive, checks one without the arena.
    """

    serializer_class = ExportSerializer

    @extend_schema(filters=False)
    def list(self, request: Request) -> Response:
        self.check_parameters()
        return self.page(published_archives())
