"""Model fields for exact decimals, in the five precisions that the arena uses."""

from decimal import Decimal
from typing import Any

from django.db import models
from django.utils.functional import cached_property


class ExactDecimalField(models.DecimalField):
    """A decimal field that stores exact values on both databases.

    SQLite has no decimal type and would store a binary float; there the field stores an integer in units of its last
    decimal place (cents, millionths of a share). PostgreSQL stores `numeric`. A value with more places than the field
    raises ValueError: rounding belongs to the ledger.
    """

    def get_internal_type(self) -> str:
        return "ExactDecimalField"  # Django converts a "DecimalField" on SQLite through a float of 15 digits

    def db_type(self, connection: Any) -> str:
        if connection.vendor == "sqlite":
            return "bigint"
        return f"numeric({self.max_digits}, {self.decimal_places})"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        if value is None or hasattr(value, "as_sql"):
            return value
        value = self.get_prep_value(value)
        scaled = value.scaleb(self.decimal_places)
        if scaled != scaled.to_integral_value():
            raise ValueError(f"{self.name}: {value} has more than {self.decimal_places} decimal places")
        return int(scaled) if connection.vendor == "sqlite" else value

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        return self.get_db_prep_value(value, connection)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Decimal | None:
        if value is None or connection.vendor != "sqlite":
            return value
        return (value if type(value) is int else Decimal(str(value))) * self.unit

    @cached_property
    def unit(self) -> Decimal:
        """The value of one in the last decimal place."""
        return Decimal(1).scaleb(-self.decimal_places)


class _Precision(ExactDecimalField):
    digits: int
    places: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["max_digits"], kwargs["decimal_places"] = self.digits, self.places
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        del kwargs["max_digits"], kwargs["decimal_places"]
        return name, path, args, kwargs


class MoneyField(_Precision):
    """Dollars, to the cent."""

    digits, places = 18, 2


class SharesField(_Precision):
    """Shares, to the millionth."""

    digits, places = 18, 6


class PriceField(_Precision):
    """The price of one share, in dollars between 0 and 1."""

    digits, places = 12, 10


class CostField(_Precision):
    """The cost of a model's answer or token, in dollars."""

    digits, places = 18, 12


class RateField(_Precision):
    """The rate or the exponent of a venue's fee."""

    digits, places = 9, 6
