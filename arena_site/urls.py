"""Every door of the arena."""

from django.contrib import admin
from django.urls import include, path

from arena_site.logins import login

urlpatterns = [
    path("admin/login/", login),
    path("admin/", admin.site.urls),
    path("api/", include("arena_site.urls_api")),
    path("", include("arena_site.urls_pages")),
]
handler500 = "arena_site.pages.server_error"
