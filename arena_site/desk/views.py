"""One page for every act: GET shows its form and what it would do, POST with the confirmation does it."""

from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse

from arena_site.desk.act import Act, Preview
from arena_site.desk.acts import ACTS
from arena_site.desk.audit import performed, written
from arena_site.models import AuditEntry
from markets import clock

ASKED, CONFIRMED = "asked", "confirmed"
"""The buttons of its two forms."""


class Reason(forms.Form):
    reason = forms.CharField(
        max_length=2000,
        label="Why",
        widget=forms.Textarea(attrs={"rows": 2, "cols": 60}),
    )


@dataclass(slots=True)
class _Page:
    """An act's page as it is to be shown."""

    act: Act
    form: forms.Form
    reason: forms.Form
    preview: Preview | None


def act_page(request: HttpRequest, name: str, site: AdminSite) -> HttpResponse:
    """The act of this name. Nothing but a confirmed POST of somebody permitted changes anything."""
    act = ACTS.get(name)
    if act is None:
        raise Http404
    if not request.user.has_perm(act.permission):  # type: ignore[union-attr]
        if request.method == "POST":
            _refused(act, request)
        raise PermissionDenied
    at = clock.now()
    if request.method == "POST" and CONFIRMED in request.POST:
        return _confirmed(act, request, at, site)
    sent = request.POST if request.method == "POST" else request.GET
    form = _form(act, sent)
    preview = act.preview(form.cleaned_data, at=at) if form.is_valid() else None
    return _shown(_Page(act, form, Reason(initial={"reason": act.usual_reason}), preview), request, site)


def _form(act: Act, sent: QueryDict) -> forms.Form:
    """Bound once it was told all it needs, or sent by its own button; until then what it was told stands in it."""
    fields = act.form.base_fields
    needed = [name for name, field in fields.items() if field.required]
    told = any(name in sent for name in fields) or not fields
    if ASKED in sent or (told and all(name in sent for name in needed)):
        return act.form(sent)
    return act.form(initial={name: sent[name] for name in fields if name in sent})


def _confirmed(act: Act, request: HttpRequest, at: datetime, site: AdminSite) -> HttpResponse:
    form, reason = act.form(request.POST), Reason(request.POST)
    sound = form.is_valid()
    if not reason.is_valid() or not sound:
        preview = act.preview(form.cleaned_data, at=at) if sound else None
        return _shown(_Page(act, form, reason, preview), request, site, status=HTTPStatus.BAD_REQUEST)
    asked = form.cleaned_data
    with transaction.atomic():
        done = performed(act, asked, at=at, by=request.user.get_username(), reason=reason.cleaned_data["reason"])
        if done.changed:
            _logged(act, asked, request)
    act.follow_up(asked, done, at=at)
    if done.secret:
        context = {**site.each_context(request), "title": act.title, "done": done}
        request.current_app = site.name  # type: ignore[attr-defined]
        return TemplateResponse(request, "admin/secret.html", context)
    (messages.success if done.changed else messages.warning)(request, done.says)
    return HttpResponseRedirect(done.path or reverse("admin:index"))


def _logged(act: Act, asked: dict[str, Any], request: HttpRequest) -> None:
    """The admin's own line on it, by which the API also tells that rows may have changed."""
    assert request.user.pk is not None
    target = act.target(asked) or act.title
    LogEntry.objects.create(
        user_id=request.user.pk, object_repr=target[:200], action_flag=CHANGE, change_message=f"{act.title}: {target}"
    )


def _refused(act: Act, request: HttpRequest) -> None:
    written(
        act=act.name,
        by=request.user.get_username(),
        result=AuditEntry.Result.REFUSED,
        reason=request.POST.get("reason", "")[:2000],
        message=f"needs the permission {act.permission}",
        asked={name: request.POST.getlist(name)[:50] for name in act.form.base_fields if name in request.POST},
    )


def _shown(page: _Page, request: HttpRequest, site: AdminSite, status: int = HTTPStatus.OK) -> HttpResponse:
    context = {
        **site.each_context(request),
        "title": page.act.title,
        "act": page.act,
        "form": page.form,
        "reason": page.reason,
        "preview": page.preview,
        "media": page.form.media,
    }
    request.current_app = site.name  # type: ignore[attr-defined]
    return TemplateResponse(request, "admin/act.html", context, status=status)
