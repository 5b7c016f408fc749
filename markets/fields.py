"""Exact decimals in the database, and the four precisions the arena counts in."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections, models
from django.utils.functional import cached_property


class ExactDecimalField(models.DecimalField):
    """A decimal that comes back as it went in, on both databases.

    SQLite has no decimal type and would keep a binary float, so there the number is stored as an integer
    of its last decimal place (cents, millionths of a share); PostgreSQL stores `numeric`. A value with more
    places than the field is refused, never rounded: rounding is a decision of the ledger.
    """

    def get_internal_type(self) -> str:
        return "ExactDecimalField"  # keeps SQLite's 15-digit float conversion of DecimalField away

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
        """One of the last decimal place."""
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
    """What a model's answer or token cost, in dollars."""

    digits, places = 18, 12


def bare(rows: models.QuerySet[Any, Any]) -> list[tuple[Any, ...]]:
    """The rows of a query for columns as the database gives them: exact decimals on SQLite as whole `stored_unit`s.

    For sums over thousands of rows, most of whose time it would be to make a decimal of each value.
    """
    try:
        statement = rows.query.sql_with_params()
    except EmptyResultSet:
        return []
    with connections[rows.db].cursor() as cursor:
        cursor.execute(*statement)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def stored_unit(model: type[models.Model], name: str) -> Decimal:
    """What one of a field's bare numbers stands for: its last decimal place on SQLite, itself on PostgreSQL."""
    field = model._meta.get_field(name)
    assert isinstance(field, ExactDecimalField)
    return field.unit if connections[model.objects.db].vendor == "sqlite" else Decimal(1)  # type: ignore[attr-defined]


def instant(value: Any) -> datetime | None:
    """An instant as a database gives it to who asks by hand: SQLite has no type for one."""
    if value is None:
        return None
    at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
