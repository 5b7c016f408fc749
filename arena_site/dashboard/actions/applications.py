"""Actions on applications for external agents."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from agents.models import Application
from agents.services.applications import decide_application, send_link
from arena_site.dashboard.action import Action, ActionResult, ChoiceForm, FormData, Preview, RowChoiceField


def waiting_applications(rows: QuerySet[Application]) -> QuerySet[Application]:
    return rows.filter(status=Application.Status.WAITING)


class ApplicationReviewForm(ChoiceForm):
    application = RowChoiceField(Application.objects.all(), "application", waiting_applications)


class ApproveApplication(Action):
    name, title, confirm_label = "approve-agent", "Approve an external agent", "Yes, approve it"
    description = "Its maker gets a link by mail that shows the token once."
    permission = "agents.change_registration"
    form, row_field = ApplicationReviewForm, "application"
    approved = True

    def state(self, data: FormData) -> dict[str, Any]:
        return {"status": Application.objects.get(pk=data["application"].pk).status}

    def obstacle(self, data: FormData, at: datetime) -> str:
        waits = data["application"].status == Application.Status.WAITING
        return "" if waits else f"It is {data['application'].get_status_display()}."

    def effect(self, data: FormData, at: datetime) -> Preview:
        return Preview(f"{data['application']} by {data['application'].maker_name} takes part once its token is shown.")

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        if not decide_application(data["application"], approved=self.approved, by=by, at=at):
            return None
        return ActionResult(f"{data['application']} is {'approved' if self.approved else 'rejected'}.")

    def after_commit(self, data: FormData, result: ActionResult, *, at: datetime) -> None:
        if result.changed and self.approved:
            send_link(data["application"], "Approved: show the token of")


class RejectApplication(ApproveApplication):
    name, title, confirm_label = "reject-agent", "Reject an external agent", "Yes, reject it"
    description = "Its maker gets no token."
    approved = False

    def effect(self, data: FormData, at: datetime) -> Preview:
        return Preview(f"{data['application']} by {data['application'].maker_name} takes no part.")
