"""The door for web servers. A production server does not start without a secret key."""

import os

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from arena_site.garbage import keep_what_is_loaded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "arena_site.settings")
if not (settings.SECRET_KEY_IS_SET or settings.DEBUG):
    raise ImproperlyConfigured("SECRET_KEY is not set: put SECRET_KEY=<50 random characters> into .env")
application = get_wsgi_application()
get_resolver().url_patterns  # noqa: B018 - loads pages and the maths behind them now, not while a visitor waits
keep_what_is_loaded()
