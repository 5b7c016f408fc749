"""Permissions of the three roles, which every migrate resets."""

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.roles import ADMINISTRATOR, OPERATOR, VIEWER
from tests.arena_site.dashboard.accounts import ALLOWED, sign_in

pytestmark = pytest.mark.django_db
OURS = ("markets", "cohorts", "agents", "scoring", "arena_site", "django_q")


def permissions(role: str) -> set[str]:
    of = Group.objects.get(name=role).permissions.values_list("content_type__app_label", "codename")
    return {f"{app}.{codename}" for app, codename in of}


@pytest.mark.parametrize("role", ALLOWED)
def test_role_performs_its_actions_and_no_others(role: str) -> None:
    client = sign_in(role)
    listed = {action.name for action in client.get(reverse("admin:index")).context["actions"]}
    assert listed == ALLOWED[role]
    for name in ACTIONS:
        assert (client.get(reverse("admin:action", args=[name])).status_code == 200) == (name in ALLOWED[role]), name


def test_every_role_views_every_row_of_the_arena() -> None:
    views = {
        f"{model._meta.app_label}.view_{model._meta.model_name}"
        for app in OURS
        for model in apps.get_app_config(app).get_models()
    }
    for role in ALLOWED:
        assert permissions(role) >= views


def test_operators_neither_create_accounts_nor_change_roles() -> None:
    assert not {
        name for name in permissions(OPERATOR) if name.startswith("auth.") and not name.startswith("auth.view_")
    }
    operator = sign_in(OPERATOR)
    assert operator.get(reverse("admin:auth_user_add")).status_code == 403
    assert operator.get(reverse("admin:auth_user_changelist")).status_code == 200


def test_migrate_resets_the_roles() -> None:
    Group.objects.get(name=VIEWER).delete()
    Group.objects.get(name=OPERATOR).permissions.add(Permission.objects.get(codename="delete_user"))
    own_group = Group.objects.create(name="own")
    call_command("migrate", verbosity=0)
    assert permissions(VIEWER)
    assert "auth.delete_user" not in permissions(OPERATOR)
    assert not own_group.permissions.exists()


@pytest.mark.parametrize("time", ["first", "second"])
@pytest.mark.django_db(transaction=True)
def test_roles_exist_after_a_test_emptied_the_database(time: str) -> None:
    assert permissions(VIEWER) < permissions(OPERATOR) < permissions(ADMINISTRATOR)


def test_administrator_neither_creates_nor_changes_a_superuser() -> None:
    administrator = sign_in(ADMINISTRATOR)
    account = User.objects.create_user("colleague")
    address = reverse("admin:auth_user_change", args=[account.pk])
    form = {
        "username": "colleague", "is_active": "on", "is_staff": "on", "is_superuser": "on",
        "groups": [Group.objects.get(name=OPERATOR).pk], "user_permissions": [Permission.objects.first().pk],
        "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00",
    }  # fmt: skip
    assert administrator.post(address, form).status_code == 302
    account.refresh_from_db()
    assert (account.is_staff, account.is_superuser, account.user_permissions.count()) == (True, False, 0)
    assert [group.name for group in account.groups.all()] == [OPERATOR]

    superuser = User.objects.create_superuser("superuser")
    for page in ("change", "delete"):
        assert (
            administrator.post(
                reverse(f"admin:auth_user_{page}", args=[superuser.pk]), form | {"post": "yes"}
            ).status_code
            == 403
        )
    password = reverse("admin:auth_user_password_change", args=[superuser.pk])
    assert administrator.post(password, {"password1": "mine-now-1", "password2": "mine-now-1"}).status_code == 403


def test_staff_without_a_role_sees_no_dashboard() -> None:
    client = Client()
    client.force_login(User.objects.create_user("new", is_staff=True))
    response = client.get(reverse("admin:index"))
    assert response.status_code == 200
    assert "overview" not in response.context
    assert response.context["actions"] == []


@pytest.mark.parametrize("page", ["change", "delete", "add"])
def test_schedules_can_not_be_edited(admin_client: Client, page: str) -> None:
    from arena_site import jobs

    row = jobs.install()[0]
    args = [] if page == "add" else [row.pk]
    assert admin_client.post(reverse(f"admin:django_q_schedule_{page}", args=args), {"post": "yes"}).status_code == 403


def test_session_ends_with_the_browser_and_after_twelve_hours() -> None:
    client = sign_in(OPERATOR)
    client.logout()
    User.objects.filter(username=OPERATOR).update(password="")
    person = User.objects.get(username=OPERATOR)
    person.set_password("a-good-one-1")
    person.save()
    client.post("/admin/login/", {"username": OPERATOR, "password": "a-good-one-1"})
    cookie = client.cookies["sessionid"]
    assert cookie["max-age"] == ""
    assert client.session.get_expiry_age() == 12 * 3600


def test_administrator_grants_no_permission_outside_the_roles() -> None:
    powerful = Group.objects.create(name="powerful")
    powerful.permissions.add(Permission.objects.get(codename="delete_session"))
    administrator = sign_in(ADMINISTRATOR)
    account = User.objects.create_user("somebody", is_staff=True)
    assert administrator.get(reverse("admin:auth_group_add")).status_code == 403
    assert administrator.post(reverse("admin:auth_group_change", args=[powerful.pk])).status_code == 403
    page = administrator.get(reverse("admin:auth_user_change", args=[account.pk]))
    assert {group.name for group in page.context["adminform"].form.fields["groups"].queryset} == {*ALLOWED}
    form = {"username": "somebody", "groups": [powerful.pk], "is_staff": "on", "is_active": "on"}
    assert administrator.post(reverse("admin:auth_user_change", args=[account.pk]), form).status_code == 200
    assert not account.groups.exists()
