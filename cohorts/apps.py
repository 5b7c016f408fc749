from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


class CohortsConfig(AppConfig):
    name = "cohorts"
    verbose_name = "Methodologies and cohorts"

    def ready(self) -> None:
        post_migrate.connect(self.install_guards, sender=self)

    def install_guards(self, *, using: str, **kwargs: Any) -> None:
        """Freezes the methodologies that cohorts use, in the database itself."""
        from cohorts.models import Cohort, Methodology

        connection = connections[using]
        if {Methodology._meta.db_table, Cohort._meta.db_table} <= set(connection.introspection.table_names()):
            Methodology.in_use_guard().install(connection)
