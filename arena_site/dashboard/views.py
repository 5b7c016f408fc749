"""The page of an action: GET shows its form and a preview, a confirmed POST performs it."""

from datetime import datetime
from http import HTTPStatus

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse

from arena_site.dashboard.action import Action, FormData
from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.audit import perform_action, write_entry
from arena_site.models import AuditEntry
from markets.foundation import clock

SHOW_PREVIEW, CONFIRM = "preview", "confirmed"
"""Names of the page's two submit buttons."""


class ReasonForm(forms.Form):
    reason = forms.CharField(max_length=2000, label="Why", widget=forms.Textarea(attrs={"rows": 2, "cols": 60}))


def action_page(request: HttpRequest, name: str, site: AdminSite) -> HttpResponse:
    """The page of an action. Only a confirmed POST by a permitted account changes anything."""
    action = ACTIONS.get(name)
    if action is None:
        raise Http404
    if not request.user.has_perm(action.permission):  # type: ignore[union-attr]
        if request.method == "POST":
            _audit_refusal(action, request)
        raise PermissionDenied
    at = clock.now()
    if request.method == "POST" and CONFIRM in request.POST:
        return _perform(action, request, at, site)
    form = _form(action, request.POST if request.method == "POST" else request.GET)
    return _render(action, form, ReasonForm(initial={"reason": action.default_reason}), request, at, site)


def _form(action: Action, query: QueryDict) -> forms.Form:
    """The form, bound once its button was pressed or all that it requires is in the query; else prefilled."""
    fields = action.form.base_fields
    required = [name for name, field in fields.items() if field.required]
    is_prefilled = any(name in query for name in fields) or not fields
    if SHOW_PREVIEW in query or (is_prefilled and all(name in query for name in required)):
        return action.form(query)
    return action.form(initial={name: query[name] for name in fields if name in query})


def _perform(action: Action, request: HttpRequest, at: datetime, site: AdminSite) -> HttpResponse:
    form, reason = action.form(request.POST), ReasonForm(request.POST)
    if not (form.is_valid() and reason.is_valid()):
        return _render(action, form, reason, request, at, site, status=HTTPStatus.BAD_REQUEST)
    data, by = form.cleaned_data, request.user.get_username()
    with transaction.atomic():
        result = perform_action(action, data, at=at, by=by, reason=reason.cleaned_data["reason"])
        if result.changed:
            _write_log_entry(action, data, request)
    action.after_commit(data, result, at=at)
    if result.secret:
        context = {**site.each_context(request), "title": action.title, "result": result}
        request.current_app = site.name  # type: ignore[attr-defined]
        return TemplateResponse(request, "admin/secret.html", context)
    (messages.success if result.changed else messages.warning)(request, result.message)
    return HttpResponseRedirect(result.path or action.target_path(data) or reverse("admin:index"))


def _write_log_entry(action: Action, data: FormData, request: HttpRequest) -> None:
    """Django's own log entry, from which the API's Last-Modified also takes that rows may have changed."""
    assert request.user.pk is not None
    target = action.target(data) or action.title
    message = f"{action.title}: {target}"
    LogEntry.objects.create(
        user_id=request.user.pk, object_repr=target[:200], action_flag=CHANGE, change_message=message
    )


def _audit_refusal(action: Action, request: HttpRequest) -> None:
    write_entry(
        action=action.name,
        by=request.user.get_username(),
        result=AuditEntry.Result.REFUSED,
        reason=request.POST.get("reason", "")[:2000],
        message=f"needs the permission {action.permission}",
        form_data={name: request.POST.getlist(name)[:50] for name in action.form.base_fields if name in request.POST},
    )


def _render(
    action: Action,
    form: forms.Form,
    reason: forms.Form,
    request: HttpRequest,
    at: datetime,
    site: AdminSite,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    context = {
        **site.each_context(request),
        "title": action.title,
        "action": action,
        "form": form,
        "reason": reason,
        "preview": action.preview(form.cleaned_data, at=at) if form.is_valid() else None,
        "media": form.media,
    }
    request.current_app = site.name  # type: ignore[attr-defined]
    return TemplateResponse(request, "admin/action.html", context, status=status)
