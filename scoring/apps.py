from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


class ScoringConfig(AppConfig):
    name = "scoring"
    verbose_name = "Scores, snapshots and leaderboards"

    def ready(self) -> None:
        post_migrate.connect(self.renew_tokens, sender=self)
        post_migrate.connect(self.forget_past_boards, sender=self)
        post_migrate.connect(self.add_up, sender=self)

    def renew_tokens(self, *, using: str, **kwargs: Any) -> None:
        """Forgets what was kept: while migrations ran no trigger said what changed."""
        from scoring import revisions
        from scoring.models import Revision

        if Revision._meta.db_table in connections[using].introspection.table_names():
            revisions.renew(using)

    def forget_past_boards(self, *, using: str, plan: Any = None, **kwargs: Any) -> None:
        """Lets none of them stand: while migrations ran no trigger took away what a change reached."""
        from scoring import past
        from scoring.models import PastBoard

        if plan and PastBoard._meta.db_table in connections[using].introspection.table_names():
            past.forget(using)

    def add_up(self, *, using: str, plan: Any = None, **kwargs: Any) -> None:
        """Rolls snapshots up anew: while migrations ran no trigger did."""
        from scoring import rollups
        from scoring.models import FamilyTotal

        if plan and FamilyTotal._meta.db_table in connections[using].introspection.table_names():
            rollups.add_up(connections[using])
