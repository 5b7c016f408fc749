"""The OpenAPI description of read-only endpoints; loads the schema generator, so nothing imports it at startup."""

from itertools import chain
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, PolymorphicProxySerializer

from foundation.rest.negotiation import FORMAT_PARAMETER
from foundation.rest.problems import PROBLEM_SCHEMA
from foundation.rest.serializers import FIELDS_PARAMETER, field_names


class ReadOnlySchema(AutoSchema):
    """The schema of a read-only endpoint: the parameter `fields` and every response status.

    Rows of a view with `other_serializer_classes` have the fields of one of these or of its own serializer.
    """

    def rows(self) -> list[Any]:
        return [self.view.get_serializer_class(), *getattr(self.view, "other_serializer_classes", ())]

    def get_override_parameters(self) -> list[OpenApiParameter]:
        if self.method != "GET" or not getattr(self.view, "takes_fields", False):
            return super().get_override_parameters()
        names = list(dict.fromkeys(chain.from_iterable(map(field_names, self.rows()))))
        parameter = OpenApiParameter(
            FIELDS_PARAMETER, str, many=True, explode=False, style="form", enum=names,
            description="The fields to return, separated by commas (default: all). Others are not read.",
        )  # fmt: skip
        parameters = [*super().get_override_parameters(), parameter]
        if self.view.action == "list":
            text = "The form of the rows, whatever `Accept` says; JSON if absent."
            parameters.append(OpenApiParameter(FORMAT_PARAMETER, str, enum=["json", "csv"], description=text))
        return parameters

    def get_response_serializers(self) -> Any:
        first, *variants = self.rows()
        name = f"Any{first.__name__.removesuffix('Serializer')}"
        any_row = PolymorphicProxySerializer(name, [first, *variants], resource_type_field_name=None)
        responses = {
            200: any_row if variants else super().get_response_serializers(),
            304: OpenApiResponse(description="Not modified since the given ETag or time."),
        }
        responses[404] = OpenApiResponse(PROBLEM_SCHEMA, "No such row." if self.view.detail else "No such page.")
        return responses
