from django.contrib.admin.apps import AdminConfig


class DashboardConfig(AdminConfig):
    """Django's admin, with the operator dashboard as its front page."""

    default_site = "arena_site.dashboard.site.OperatorSite"
