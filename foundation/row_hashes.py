"""Hashes of rows from which nothing else follows, so that a row that is rewritten behind its guard no longer fits."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.apps import apps
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.utils.functional import cached_property

from foundation.bulk import BATCH
from foundation.json_lines import instant_text, json_number


class RowHashField(models.CharField):
    """SHA-256 over a row's other fields as it is saved, without its id and the fields that may change later (`but`)."""

    def __init__(self, but: Iterable[str] = (), **kwargs: Any) -> None:
        self.but = tuple(but)
        super().__init__(**{"max_length": 64, "editable": False, **kwargs})

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        del kwargs["max_length"], kwargs["editable"]
        return name, path, args, {"but": self.but, **kwargs} if self.but else kwargs

    def pre_save(self, model_instance: models.Model, add: bool) -> str:
        value = self.hash_of(vars(model_instance))
        setattr(model_instance, self.attname, value)
        return value

    def hash_of(self, values: Mapping[str, Any]) -> str:
        """The hash of a row's values. Those that are empty are left out, so that a later field changes no hash."""
        plain = {}
        for field in self.fields:
            if (value := values[field.attname]) not in (None, "", [], {}):
                plain[field.attname] = _plain(field, value)
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()

    @cached_property
    def fields(self) -> list[models.Field]:
        """The fields that are hashed."""
        left_out = {"id", self.name, *self.but}
        return [field for field in self.model._meta.concrete_fields if field.name not in left_out]


def _plain(field: models.Field, value: Any) -> Any:
    """A value as the database returns it, as JSON."""
    if isinstance(field, models.JSONField):
        # PostgreSQL returns 1e20 as an integer: every number is read as a float.
        return json.loads(json.dumps(value, cls=DjangoJSONEncoder), parse_int=float)
    if isinstance(field, models.DecimalField | models.DateTimeField | models.DurationField):
        value = field.to_python(value)
    if isinstance(value, Decimal):
        return json_number(value)
    if isinstance(value, datetime):
        return instant_text(value)
    return value if isinstance(value, bool | int | float) else str(value)


def hash_after(row: models.Model, changes: Mapping[str, Any]) -> str:
    """The hash of a row after an update of some of its fields."""
    field: Any = row._meta.get_field("row_sha256")
    return field.hash_of({**vars(row), **changes})


def rewritten_rows() -> Iterator[str]:
    """A line for each row that is not what its hash says."""
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, RowHashField):
                names = [field.attname, "pk", *(hashed.attname for hashed in field.fields)]
                for row in model._default_manager.order_by("pk").values_list(*names).iterator(BATCH):
                    values = dict(zip(names, row, strict=True))
                    if field.hash_of(values) != values[field.attname]:
                        yield f"{model._meta.verbose_name} {values['pk']} is not what its hash says: it was rewritten"
