"""The venue clients as the settings name them. Use as context managers."""

from django.conf import settings

from markets.sources.polymarket import Clob, Gamma


def gamma() -> Gamma:
    return Gamma(settings.GAMMA_BASE_URL)


def clob() -> Clob:
    return Clob(settings.CLOB_BASE_URL)
