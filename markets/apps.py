from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


class MarketsConfig(AppConfig):
    name = "markets"
    verbose_name = "Markets, prices and universes"

    def ready(self) -> None:
        from foundation.services.runs import recorders
        from markets.services.venue_health import store_venue_traffic

        recorders.append(store_venue_traffic)
        post_migrate.connect(self.renew_cache_versions, sender=self)

    def renew_cache_versions(self, *, using: str, **kwargs: Any) -> None:
        """Gives every scope a version, and responses cached by older code no chance: they may have another form."""
        from markets.models import CacheVersion
        from markets.services.cache_versions import Scope, renew_versions

        if CacheVersion._meta.db_table in connections[using].introspection.table_names():
            renew_versions(*Scope)
