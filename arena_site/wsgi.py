"""The WSGI entry point. A production server does not start without a secret key."""

import os

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application
from django.template import engines
from django.urls import get_resolver

from arena_site.operations.processes import freeze_loaded_objects

os.umask(0o077)  # as in manage.py
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "arena_site.settings")
if not (settings.SECRET_KEY_IS_SET or settings.DEBUG):
    raise ImproperlyConfigured("SECRET_KEY is not set: put SECRET_KEY=<50 random characters> into .env")
application = get_wsgi_application()
from arena_site.operations.worker_watch import watch_workers  # noqa: E402 - its models need the apps

# Loaded now rather than at the first request: the views, and the templates of the pages.
get_resolver().url_patterns  # noqa: B018
engines["jinja2"].from_string("")
freeze_loaded_objects()
watch_workers()
