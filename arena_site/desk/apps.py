from django.contrib.admin.apps import AdminConfig


class DeskConfig(AdminConfig):
    """Django's admin, with the operator's desk as its front page."""

    default_site = "arena_site.desk.site.DeskSite"
