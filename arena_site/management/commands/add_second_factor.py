"""`manage.py add_second_factor NAME`: gives an account a new second factor, and recovery codes."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django_otp import devices_for_user
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from arena_site.dashboard.audit import BY, write_entry
from arena_site.models import AuditEntry
from foundation.commands import BAD_USAGE

RECOVERY_CODES = 8


class Command(BaseCommand):
    help = "Gives an account a second factor in place of any that it has, and prints it for an authenticator app, once."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("name", help="the account's user name")
        parser.add_argument("--remove", action="store_true", help="leave it without one")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["name"]).first()
        if user is None:
            raise CommandError(f"there is no account {options['name']}", returncode=BAD_USAGE)
        with transaction.atomic():
            for device in devices_for_user(user, confirmed=None):
                device.delete()
            verb = "remove" if options["remove"] else "add"
            write_entry(
                action=f"{verb}-second-factor", by=BY, target=user.username, reason="by its command",
                result=AuditEntry.Result.DONE,
            )  # fmt: skip
            if options["remove"]:
                self.stdout.write(f"{user.username} has no second factor now")
                return
            device = TOTPDevice.objects.create(user=user, name="authenticator")
            recovery = StaticDevice.objects.create(user=user, name="recovery codes")
            codes = [StaticToken.random_token() for _ in range(RECOVERY_CODES)]
            StaticToken.objects.bulk_create([StaticToken(device=recovery, token=code) for code in codes])
        self.stdout.write(f"for the authenticator app: {device.config_url}")
        self.stdout.write("recovery codes, each for one login: " + " ".join(codes))
