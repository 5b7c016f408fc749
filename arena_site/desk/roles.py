"""Who may do what: three roles as groups, which every migrate makes exactly what stands here.

Whoever needs another cut makes a group of another name, or gives an account permissions of its own.
"""

VIEWER, OPERATOR, ADMINISTRATOR = "viewer", "operator", "administrator"
ARENA = ("markets", "cohorts", "agents", "scoring", "arena_site", "django_q")
"""Apps whose rows every role may look at."""
ACTS = ("run_jobs", "settle_markets", "tend_schedules", "acknowledge_alerts", "withdraw_families", "keep_tokens")
"""What operators do; permissions of the desk."""
OF_AGENTS = ("add_registration", "change_registration", "add_lineup")
"""Letting external agents take part, and proposing a line-up; to approve one is the administrator's."""
ACCOUNTS = ("user", "group")
PROTECTED = ("django_q",)
"""Rows that code alone writes, whatever Django offers."""


def install(using: str) -> None:
    """Makes the groups and gives each its permissions, as far as apps and their permissions are there."""
    from django.contrib.auth.models import Group, Permission

    known = Permission.objects.using(using).values_list("pk", "codename", "content_type__app_label")
    permissions = {pk: (app, codename) for pk, codename, app in known}
    for name, due in (
        (VIEWER, {pk for pk, of in permissions.items() if _views(*of)}),
        (OPERATOR, {pk for pk, of in permissions.items() if _views(*of) or _operates(*of)}),
        (ADMINISTRATOR, {pk for pk, of in permissions.items() if _administers(*of)}),
    ):
        group, _ = Group.objects.using(using).get_or_create(name=name)
        if set(group.permissions.values_list("pk", flat=True)) != due:
            group.permissions.set(due)


def _views(app: str, codename: str) -> bool:
    verb, _, model = codename.partition("_")
    return verb == "view" and (app in ARENA or (app == "auth" and model in ACCOUNTS))


def _operates(app: str, codename: str) -> bool:
    return (app == "arena_site" and codename in ACTS) or (app == "agents" and codename in OF_AGENTS)


def _administers(app: str, codename: str) -> bool:
    if _views(app, codename) or _operates(app, codename):
        return True
    if app == "auth":
        return codename.partition("_")[2] in ACCOUNTS
    return app in ARENA and app not in PROTECTED
