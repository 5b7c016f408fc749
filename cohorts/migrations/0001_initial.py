import django.db.models.deletion
import foundation.fields
import foundation.row_hashes
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []

    operations = [
        migrations.CreateModel('Methodology', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('version', models.CharField(max_length=20, unique=True)),
            ('title', models.CharField(max_length=200)),
            ('published_at', models.DateTimeField(blank=True, null=True)),
            ('starting_balance', foundation.fields.MoneyField()),
            ('minimum_bet', foundation.fields.MoneyField()),
            ('maximum_bet_fraction', models.DecimalField(decimal_places=4, max_digits=5)),
            ('universe_size', models.PositiveIntegerField()),
            ('universe_rule', models.TextField()),
            ('actions', models.JSONField()),
            ('decision_weeks', models.PositiveSmallIntegerField()),
            ('retry_window', models.DurationField()),
            ('malformed_retries', models.PositiveSmallIntegerField()),
            ('refused_retries', models.PositiveSmallIntegerField()),
            ('temperature', models.FloatField()),
            ('max_tokens', models.PositiveIntegerField()),
            ('reasoning', models.JSONField(help_text="The gateway's parameter, such as {'effort': 'medium'}.")),
            ('provider_routing', models.JSONField()),
            ('provider_pins', models.JSONField(blank=True, default=dict, help_text="Model id to more routing for it, such as {'order': ['deepseek'], 'quantizations': ['fp8']}.")),
            ('free_form_answers', models.BooleanField(default=False, help_text="No model is asked to follow the answer's JSON schema, even if it could.")),
            ('system_prompt', models.TextField()),
            ('user_prompt', models.TextField(help_text='A template with {portfolio}, {positions}, {awaiting} and {markets}.')),
            ('malformed_note', models.TextField(help_text='Added when an answer was malformed, with {reason}.')),
            ('refused_note', models.TextField(help_text='Added when every instruction was refused, with {reasons}.')),
            ('midpoint_tolerance', models.DecimalField(decimal_places=4, max_digits=5)),
            ('maximum_spread', models.DecimalField(decimal_places=4, max_digits=5)),
            ('jump_tolerance', models.DecimalField(decimal_places=4, max_digits=5)),
            ('rulings', models.JSONField(help_text='Clarifications made by this version, one sentence each.')),
            ('scoring', models.JSONField(help_text='Each published score and its formula.')),
            ('forecast', models.JSONField(blank=True, default=dict, help_text="The forecast protocol's rules and prompts; empty in versions without it.")),
            ('trading', models.JSONField(blank=True, default=dict, help_text='Rules of the trading protocol that came later; empty in versions without them.')),
            ('row_sha256', foundation.row_hashes.RowHashField(but=('title', 'published_at'))),
        ], {
            'verbose_name_plural': 'methodologies',
            'ordering': ['version'],
            'constraints': [models.CheckConstraint(condition=models.Q(('maximum_bet_fraction__gt', 0), ('maximum_bet_fraction__lte', 1)), name='maximum_bet_fraction_is_a_share'), models.CheckConstraint(condition=models.Q(('minimum_bet__gt', 0)), name='minimum_bet_is_positive')],
        }),
        migrations.CreateModel('MissedWeek', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('week_start', models.DateTimeField(unique=True)),
            ('recorded_at', models.DateTimeField()),
            ('reason', models.CharField(max_length=300)),
        ], {
            'ordering': ['-week_start'],
        }),
        migrations.CreateModel('Cohort', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('number', models.PositiveIntegerField(unique=True)),
            ('week_start', models.DateTimeField(unique=True)),
            ('methodology', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='cohorts', to='cohorts.methodology')),
            ('started_at', models.DateTimeField()),
            ('status', models.CharField(choices=[('active', 'Active'), ('completed', 'Completed')], default='active', max_length=10)),
            ('completed_at', models.DateTimeField(blank=True, null=True)),
            ('voided_at', models.DateTimeField(blank=True, help_text='From then on it is asked nothing more and counts on no leaderboard.', null=True)),
            ('void_reason', models.CharField(blank=True, max_length=200)),
            ('row_sha256', foundation.row_hashes.RowHashField(but=('status', 'completed_at', 'voided_at', 'void_reason'))),
        ], {
            'ordering': ['-number'],
            'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('completed_at__isnull', True), ('status', 'active')), models.Q(('completed_at__isnull', False), ('status', 'completed')), _connector='OR'), name='completed_cohort_has_a_time'), models.CheckConstraint(condition=models.Q(models.Q(('void_reason', ''), ('voided_at', None)), models.Q(('voided_at__isnull', False), models.Q(('void_reason', ''), _negated=True)), _connector='OR'), name='voided_cohort_has_a_reason')],
        }),
    ]
