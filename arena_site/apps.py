from django.apps import AppConfig


class ArenaSiteConfig(AppConfig):
    name = "arena_site"
    verbose_name = "The arena"

    def ready(self) -> None:
        from arena_site import checks  # noqa: F401 - registers them
