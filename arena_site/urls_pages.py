"""Everything a browser or a monitor asks for, but for the admin and the API."""

from django.urls import include, path

from arena_site import health, pages

urlpatterns = [
    path("", include("scoring.urls")),
    path("about/", pages.about, name="about"),
    path("robots.txt", pages.robots, name="robots"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
]
