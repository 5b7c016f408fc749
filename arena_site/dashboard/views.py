"""The page of an action: GET shows its form and a preview, a confirmed POST performs it."""

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

from arena_site.dashboard.action import Action
from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.audit import perform_action, write_entry
from arena_site.models import AuditEntry
from foundation import clock

SHOW_PREVIEW, CONFIRM = "preview", "confirmed"
"""Names of the page's two submit buttons."""


class ReasonForm(forms.Form):
    reason = forms.CharField(max_length=2000, label="Why", widget=forms.Textarea(attrs={"rows": 2, "cols": 60}))


class ActionPage:
    """The page of an action at an instant. Only a confirmed POST by a permitted account changes anything."""

    def __init__(self, request: HttpRequest, name: str, site: AdminSite) -> None:
        if name not in ACTIONS:
            raise Http404
        self.request, self.site = request, site
        self.action, self.at = ACTIONS[name], clock.now()
        request.current_app = site.name  # type: ignore[attr-defined]

    def response(self) -> HttpResponse:
        request, action = self.request, self.action
        if not request.user.has_perm(action.permission):  # type: ignore[union-attr]
            if request.method == "POST":
                self._audit_refusal()
            raise PermissionDenied
        if request.method == "POST" and CONFIRM in request.POST:
            return self._perform()
        form = _form(action, request.POST if request.method == "POST" else request.GET)
        return self._render(form, ReasonForm(initial={"reason": action.default_reason}))

    def _perform(self) -> HttpResponse:
        request, action = self.request, self.action
        form, reason = action.form(request.POST), ReasonForm(request.POST)
        if not (form.is_valid() and reason.is_valid()):
            return self._render(form, reason, status=HTTPStatus.BAD_REQUEST)
        data, user = form.cleaned_data, request.user
        assert user.pk is not None
        try:
            self.at = clock.recording_now()
        except clock.ClockAhead as error:
            messages.error(request, f"Nothing was changed: {error}")
            return self._render(form, reason, status=HTTPStatus.SERVICE_UNAVAILABLE)
        action.prepare(at=self.at)
        with transaction.atomic():
            by, why = user.get_username(), reason.cleaned_data["reason"]
            result = perform_action(action, data, at=self.at, by=by, reason=why)
            if result.changed:
                # Django's own log entry, from which the API's Last-Modified also takes that rows may have changed.
                target = action.target(data) or action.title
                LogEntry.objects.create(
                    user_id=user.pk, object_repr=target[:200], action_flag=CHANGE,
                    change_message=f"{action.title}: {target}",
                )  # fmt: skip
        action.after_commit(data, result, at=self.at)
        (messages.success if result.changed else messages.warning)(request, result.message)
        return HttpResponseRedirect(result.path or action.target_path(data) or reverse("admin:index"))

    def _audit_refusal(self) -> None:
        form, fields = self.request.POST, self.action.form.base_fields
        write_entry(
            action=self.action.name,
            by=self.request.user.get_username(),
            result=AuditEntry.Result.REFUSED,
            reason=form.get("reason", "")[:2000],
            message=f"needs the permission {self.action.permission}",
            form_data={name: form.getlist(name)[:50] for name in fields if name in form},
        )

    def _render(self, form: forms.Form, reason: forms.Form, status: int = HTTPStatus.OK) -> HttpResponse:
        context = {
            **self.site.each_context(self.request),
            "title": self.action.title,
            "action": self.action,
            "form": form,
            "reason": reason,
            "preview": self.action.preview(form.cleaned_data, at=self.at) if form.is_valid() else None,
            "media": form.media,
        }
        return TemplateResponse(self.request, "admin/action.html", context, status=status)


def _form(action: Action, query: QueryDict) -> forms.Form:
    """The form, bound once its button was pressed or all that it requires is in the query; else prefilled."""
    fields = action.form.base_fields
    required = {name for name, field in fields.items() if field.required}
    values = {name: query[name] for name in fields if name in query}
    is_prefilled = bool(values) or not fields
    has_chosen_row = bool(action.row_field) and len(fields) > 1 and query.keys() <= {action.row_field, SHOW_PREVIEW}
    if has_chosen_row:  # the other fields depend on the row: they are asked for next
        return action.form(initial=values)
    if SHOW_PREVIEW in query or (is_prefilled and required <= values.keys()):
        return action.form(query)
    return action.form(initial=values)
