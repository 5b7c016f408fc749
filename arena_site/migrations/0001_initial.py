import django.core.serializers.json
import foundation.row_hashes
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []

    operations = [
        migrations.CreateModel('AuditEntry', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('at', models.DateTimeField(db_index=True, help_text='Wall-clock time, in replays too.')),
            ('by', models.CharField(help_text='The name of the account.', max_length=150)),
            ('action', models.CharField(max_length=40)),
            ('target', models.CharField(blank=True, help_text='Rows that the action concerns.', max_length=200)),
            ('path', models.CharField(blank=True, help_text="The target's page in the admin.", max_length=200)),
            ('reason', models.TextField(blank=True)),
            ('result', models.CharField(choices=[('done', 'Done'), ('unchanged', 'nothing to change'), ('refused', 'not permitted')], max_length=10)),
            ('message', models.TextField(blank=True, help_text='Message shown to the operator.')),
            ('form_data', models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder)),
            ('before', models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder)),
            ('after', models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder)),
            ('row_sha256', foundation.row_hashes.RowHashField()),
        ], {
            'verbose_name_plural': 'audit log',
            'ordering': ['-at', '-pk'],
            'permissions': [('run_jobs', 'Can run jobs, retry tasks and build archives'), ('settle_markets', 'Can settle and cancel markets manually, and reverse a settlement'), ('manage_schedules', 'Can pause and resume schedules'), ('acknowledge_alerts', 'Can acknowledge alerts'), ('withdraw_families', 'Can withdraw families from future cohorts')],
            'default_permissions': ('view',),
            'indexes': [models.Index(fields=['action', '-at'], name='audit_by_action_and_time')],
            'constraints': [models.CheckConstraint(condition=models.Q(('result', 'refused'), models.Q(('reason', ''), _negated=True), _connector='OR'), name='action_has_reason')],
        }),
        migrations.CreateModel('Worker', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('name', models.CharField(help_text="The machine's name and the cluster's process.", max_length=100, unique=True)),
            ('seen_at', models.DateTimeField(help_text='Wall-clock time, in replays too.')),
        ], {
            'ordering': ['-seen_at'],
            'default_permissions': ('view',),
        }),
        migrations.CreateModel('HostClaim', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('host_id', models.CharField(blank=True, help_text='Of ARENA_HOST_ID; empty in a restored copy, which waits for one.', max_length=100)),
            ('machine', models.CharField(blank=True, help_text="The machine's name, for people.", max_length=100)),
            ('claimed_at', models.DateTimeField(help_text='Wall-clock time.')),
        ], {
            'default_permissions': ('view',),
            'constraints': [models.CheckConstraint(condition=models.Q(('pk', 1)), name='one_host_claim')],
        }),
        migrations.CreateModel('Backup', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('taken_at', models.DateTimeField(db_index=True, help_text='Wall-clock time.')),
            ('file', models.CharField(help_text='Its path on the machine that took it.', max_length=1000)),
            ('machine', models.CharField(max_length=100)),
            ('bytes', models.BigIntegerField()),
            ('sha256', models.CharField(max_length=64)),
        ], {
            'ordering': ['-taken_at', '-pk'],
            'default_permissions': ('view',),
        }),
    ]
