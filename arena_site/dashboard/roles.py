"""The three roles, as groups whose permissions every migrate resets to those given here.

For other combinations, create a group of another name or give an account permissions of its own.
"""

from arena_site.models import AuditEntry

VIEWER, OPERATOR, ADMINISTRATOR = "viewer", "operator", "administrator"
NAMES = (VIEWER, OPERATOR, ADMINISTRATOR)
ARENA = ("foundation", "markets", "cohorts", "agents", "scoring", "arena_site", "django_q")
"""Apps whose rows every role may view."""
ACTION_PERMISSIONS = list(dict(AuditEntry._meta.permissions))
AGENT_PERMISSIONS = ("add_registration", "change_registration", "add_lineup")
"""Admission of external agents and proposal of line-ups; approval is for administrators."""
ACCOUNTS = ("user", "group")
"""Models that every role may view. Superusers alone write groups, which could hold permissions outside the roles."""
PROTECTED = ("django_q",)
"""Apps whose rows only code may write."""


def install(using: str) -> None:
    """Creates the groups and sets their permissions, of those that are installed so far."""
    from django.contrib.auth.models import Group, Permission

    rows = list(Permission.objects.using(using).values_list("pk", "codename", "content_type__app_label"))
    for name, is_granted in ((VIEWER, _views), (OPERATOR, _views_or_operates), (ADMINISTRATOR, _administers)):
        expected = {pk for pk, codename, app in rows if is_granted(app, codename)}
        group, _ = Group.objects.using(using).get_or_create(name=name)
        if set(group.permissions.values_list("pk", flat=True)) != expected:
            group.permissions.set(expected)


def _views(app: str, codename: str) -> bool:
    verb, _, model = codename.partition("_")
    return verb == "view" and (app in ARENA or (app == "auth" and model in ACCOUNTS))


def _operates(app: str, codename: str) -> bool:
    return (app == "arena_site" and codename in ACTION_PERMISSIONS) or (
        app == "agents" and codename in AGENT_PERMISSIONS
    )


def _views_or_operates(app: str, codename: str) -> bool:
    return _views(app, codename) or _operates(app, codename)


def _administers(app: str, codename: str) -> bool:
    if _views_or_operates(app, codename):
        return True
    if app == "auth":
        return codename.partition("_")[2] == "user"
    return app in ARENA and app not in PROTECTED
