import django.core.serializers.json
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from foundation.layout import layout_id
from foundation.version import VERSION


def record_layout(apps, schema_editor):
    """In the same transaction as the tables, so that a database which has these has its layout."""
    values = {"layout": layout_id(), "made_by": VERSION, "migrated_by": VERSION}
    apps.get_model("foundation", "DatabaseLayout").objects.get_or_create(pk=1, defaults=values)


class Migration(migrations.Migration):
    initial = True
    dependencies = []

    operations = [
        migrations.CreateModel('Alert', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('kind', models.CharField(max_length=40)),
            ('subject', models.CharField(max_length=200)),
            ('message', models.TextField()),
            ('remedy', models.TextField(blank=True, help_text='What the operator should do.')),
            ('path', models.CharField(blank=True, help_text='Page that shows the cause.', max_length=200)),
            ('urgent', models.BooleanField(default=True, help_text='Critical; otherwise it can wait.')),
            ('raised_at', models.DateTimeField()),
            ('cleared_at', models.DateTimeField(blank=True, null=True)),
        ], {
            'ordering': ['-raised_at'],
            'constraints': [models.UniqueConstraint(condition=models.Q(('cleared_at', None)), fields=('kind', 'subject'), name='one_open_alert_per_subject')],
        }),
        migrations.CreateModel('Run', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('kind', models.CharField(max_length=40)),
            ('at', models.DateTimeField(help_text='The scheduled time that the run serves.')),
            ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
            ('finished_at', models.DateTimeField(blank=True, null=True)),
            ('heartbeat_at', models.DateTimeField(default=django.utils.timezone.now, help_text='Wall-clock time, in replays too.')),
            ('process', models.CharField(blank=True, default='', help_text='The machine and the number of its process.', max_length=100)),
            ('raises_alert', models.BooleanField(default=False, help_text='Whether its failure raises an alert.')),
            ('can_wait', models.BooleanField(default=False, help_text='Whether its failure harms nothing before the morning.')),
            ('status', models.CharField(choices=[('running', 'Running'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('lost', 'Lost')], default='running', max_length=10)),
            ('summary', models.JSONField(blank=True, default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder)),
            ('log', models.JSONField(blank=True, default=list, help_text='Lines with `at`, `level`, `text` and the `rows` that they concern.')),
            ('progress', models.JSONField(blank=True, default=dict, help_text='Progress: `done`, `of` and a `caption`.')),
            ('error', models.TextField(blank=True)),
        ], {
            'ordering': ['-started_at', '-pk'],
            'indexes': [models.Index(fields=['kind', '-started_at'], name='run_by_kind_and_start'), models.Index(fields=['started_at', 'id'], name='run_by_start'), models.Index(fields=['at', 'id'], name='run_by_instant'), models.Index(condition=models.Q(('status', 'running')), fields=['heartbeat_at'], name='run_under_way')],
        }),
        migrations.CreateModel('AlertItem', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('alert', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='foundation.alert')),
            ('kind', models.CharField(help_text='Kind of the alert.', max_length=40)),
            ('subject', models.CharField(max_length=200)),
            ('name', models.CharField(max_length=200)),
            ('cleared_at', models.DateTimeField(blank=True, null=True)),
        ], {
            'default_permissions': ('view',),
            'constraints': [models.UniqueConstraint(condition=models.Q(('cleared_at', None)), fields=('kind', 'subject'), name='one_open_item_per_subject')],
        }),
        migrations.CreateModel('Notice', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('alert', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notices', to='foundation.alert')),
            ('channel', models.CharField(choices=[('mail', 'Mail'), ('webhook', 'Webhook')], max_length=10)),
            ('status', models.CharField(choices=[('open', 'Open'), ('resolved', 'Resolved')], default='open', max_length=10)),
            ('tries', models.PositiveSmallIntegerField(default=0)),
            ('next_try_at', models.DateTimeField(help_text='Wall-clock time, in replays too.')),
            ('sent_at', models.DateTimeField(blank=True, null=True)),
            ('repeats', models.PositiveSmallIntegerField(default=0, help_text='How often it was sent again, since more joined.')),
            ('error', models.TextField(blank=True, help_text='Error of the last attempt.')),
        ], {
            'ordering': ['-pk'],
            'default_permissions': ('view',),
            'indexes': [models.Index(condition=models.Q(('sent_at', None)), fields=['next_try_at'], name='notice_to_send')],
            'constraints': [models.UniqueConstraint(fields=('alert', 'channel', 'status'), name='one_notice_per_alert_and_status')],
        }),
        migrations.CreateModel('DatabaseLayout', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('layout', models.CharField(help_text='Hash over the initial migrations.', max_length=12)),
            ('made_by', models.CharField(help_text='Version that made the database.', max_length=20)),
            ('migrated_by', models.CharField(help_text='Version that migrated it last.', max_length=20)),
        ], {
            'default_permissions': ('view',),
            'constraints': [models.CheckConstraint(condition=models.Q(('pk', 1)), name='one_layout')],
        }),
        migrations.RunPython(record_layout, migrations.RunPython.noop),
    ]
