"""The names under which readers reach this site."""

import re
from urllib.parse import urlsplit

from django.conf import settings

PUBLIC_NAME = re.compile(r"(?:[\w-]+\.)+[a-z][\w-]*", re.ASCII)


def site_hosts() -> list[str]:
    """The site's own host names, in small letters: no addresses, and no names of this machine alone."""
    names = list(settings.ALLOWED_HOSTS)
    for address in (settings.ARENA_SITE_URL, *settings.CSRF_TRUSTED_ORIGINS):
        names.append(urlsplit(address).hostname or "")
    plain = [name.lower().removeprefix("*").strip(".") for name in names]
    return [name for name in dict.fromkeys(plain) if PUBLIC_NAME.fullmatch(name)]
