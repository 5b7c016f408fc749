"""Registration of external agents by their makers: form, confirmation, token, and the owner's page."""

import time
from functools import partial
from http import HTTPStatus
from math import ceil
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods
from rest_framework.exceptions import Throttled

from agents.models import Application
from agents.services.applications import (
    CLOSED,
    OPEN,
    ApplicationRefused,
    confirm_address,
    find_application,
    register_applicant,
    submit_application,
)
from agents.services.registrations import add_version, find_registration, revoke_registration, rotate_token
from arena_site.authentication import WINDOW_S, count_wrong_token
from arena_site.middleware.clients import client_networks
from arena_site.middleware.limits import remaining, window_end

APPLICATIONS, APPLICATIONS_PER_DAY, DAY_S = "applications", 10, 24 * 3600
"""The limit on forms that a client sends."""
form_page = require_http_methods(["GET", "HEAD", "POST"])


class ApplicationForm(forms.ModelForm):
    class Meta:
        model = Application
        fields = ("name", "track", "protocol", "maker_name", "address")


class OwnerForm(forms.Form):
    token = forms.CharField(max_length=200, widget=forms.PasswordInput(attrs={"autocomplete": "off"}))
    action = forms.ChoiceField(
        choices=[
            ("version", "Declare a new version; the agent keeps its record"),
            ("rotate", "Replace the token by a new one"),
            ("revoke", "Revoke the token: the agent takes no part any more"),
        ]
    )
    note = forms.CharField(max_length=200, required=False, help_text="Of a new version: what changed. Public.")


def _page(request: HttpRequest, status: int = HTTPStatus.OK, **context: Any) -> HttpResponse:
    response = render(request, "registration.html", context, status=status)
    response["Referrer-Policy"] = "no-referrer"
    return response


@never_cache
@form_page
def new_agent(request: HttpRequest) -> HttpResponse:
    """The form for a new agent, where ARENA_REGISTRATION allows it."""
    title = "Register an agent"
    page = partial(_page, request, title=title, arena=request.build_absolute_uri("/").rstrip("/"))
    if settings.ARENA_REGISTRATION == CLOSED:
        message = "Registration is closed. The operator admits agents."
        return page(HTTPStatus.FORBIDDEN if request.method == "POST" else 200, message=message)
    form = ApplicationForm(request.POST if request.method == "POST" else None)
    if request.method != "POST":
        return page(form=form, button="Send")
    now = time.time()
    ends = window_end(now, DAY_S)
    if remaining(APPLICATIONS, client_networks(request.META), APPLICATIONS_PER_DAY, ends=ends) < 0:
        return _too_many(request, title, ends - now)
    if form.is_valid():
        try:
            submit_application(form.instance, at=timezone.now())
        except ValidationError as error:
            form.add_error(None, error)
        except OSError:
            message = "The mail could not be sent. Try again later."
            return page(HTTPStatus.SERVICE_UNAVAILABLE, message=message)
        else:
            return page(message="A link was sent to your address. It confirms the address.")
    return page(HTTPStatus.BAD_REQUEST, form=form, button="Send")


@never_cache
@form_page
def application(request: HttpRequest) -> HttpResponse:
    """The page of an application: the button for its next step, and the token, once."""
    title, at = "Your agent", timezone.now()
    try:
        stored = find_application(request.GET.get("key", ""), at=at)
        if request.method == "POST" and request.POST.get("step") == Application.Status.APPROVED:
            registration = register_applicant(stored, at=at)
            return _page(request, title=title, token=registration.token)
        if request.method == "POST":
            confirm_address(stored, approved=settings.ARENA_REGISTRATION == OPEN, at=at)
            stored.refresh_from_db()
    except ApplicationRefused as error:
        return _page(request, HTTPStatus.GONE, title=title, message=f"{str(error).capitalize()}.")
    except ValidationError as error:
        return _page(request, HTTPStatus.CONFLICT, title=title, message=" ".join(error.messages))
    buttons: dict[str, str] = {
        Application.Status.UNCONFIRMED: "Confirm my address",
        Application.Status.APPROVED: "Show the token, once",
    }
    message = f"{stored.name}: {stored.get_status_display()}."
    return _page(request, title=title, message=message, step=stored.status, button=buttons.get(stored.status))


@never_cache
@sensitive_post_parameters("token")
@form_page
def owner(request: HttpRequest) -> HttpResponse:
    """The actions of an agent's owner: a new version, another token, or none."""
    title, at = "Your agent", timezone.now()
    form = OwnerForm(request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid():
        status = HTTPStatus.BAD_REQUEST if request.method == "POST" else HTTPStatus.OK
        return _page(request, status, title=title, form=form, button="Do it")
    registration = find_registration(form.cleaned_data["token"], now=at)
    if registration is None:
        try:
            count_wrong_token(request)
        except Throttled:
            now = time.time()
            return _too_many(request, title, window_end(now, WINDOW_S) - now)
        return _page(request, HTTPStatus.FORBIDDEN, title=title, message="The token is unknown or revoked.")
    family, action = registration.family, form.cleaned_data["action"]
    if action == "rotate" and (successor := rotate_token(registration, at=at)):
        return _page(request, title=title, token=successor.token)
    if action == "revoke" and revoke_registration(registration, at=at):
        return _page(request, title=title, message=f"{family}: the token is revoked. The agent's record stays.")
    if action == "version":
        version = add_version(family, note=form.cleaned_data["note"], at=at)
        return _page(request, title=title, message=f"{family} is in version {version.number} from now on.")
    return _page(request, HTTPStatus.CONFLICT, title=title, message="The token was replaced in the meantime.")


def _too_many(request: HttpRequest, title: str, wait_s: float) -> HttpResponse:
    message = f"Too many tries from your network address. Try again in {ceil(wait_s / 60)} minutes."
    response = _page(request, HTTPStatus.TOO_MANY_REQUESTS, title=title, message=message)
    response["Retry-After"] = str(ceil(wait_s))
    return response
