"""All URLs of the site."""

from django.contrib import admin
from django.urls import include, path

from arena_site.authentication import login
from arena_site.operations import health

urlpatterns = [
    path("admin/login/", login),
    path("admin/", admin.site.urls),
    path("api/", include("arena_site.api")),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("", include("arena_site.pages.urls")),
]
handler400 = "arena_site.pages.views.site.bad_request"
handler500 = "arena_site.pages.views.site.server_error"
