from django.apps import AppConfig


class MarketsConfig(AppConfig):
    name = "markets"
    verbose_name = "Markets, prices and universes"
