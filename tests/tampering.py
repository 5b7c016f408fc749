"""What nobody may do to the record, done all the same: to see that it would be found."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.models import Model

from markets import guards


def lift(*models: type[Model]) -> None:
    """Takes the triggers that refuse anything off the tables of these models, or off all."""
    tables = {model._meta.db_table for model in models}
    refusals = [trigger for trigger in guards.declared() if trigger.moment == "BEFORE"]
    # PostgreSQL drops no trigger of a table whose foreign keys are still to be checked.
    connection.check_constraints()
    guards.remove(connection, [trigger for trigger in refusals if not tables or trigger.table in tables])


@contextmanager
def lifted(*models: type[Model]) -> Iterator[None]:
    """Without the triggers that refuse anything on the tables of these models, or on all; they are back at the end."""
    lift(*models)
    try:
        yield
    finally:
        guards.install(connection)
