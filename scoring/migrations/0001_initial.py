import django.core.serializers.json
import django.db.models.deletion
import django.db.models.expressions
import foundation.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = [('agents', '0001_initial'), ('markets', '0001_initial')]

    operations = [
        migrations.CreateModel('BrierScore', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('updated_at', models.DateTimeField(auto_now=True, help_text='Wall-clock time, in replays too.', null=True)),
            ('trade', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='brier_score', to='agents.trade')),
            ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='brier_scores', to='agents.agent')),
            ('market', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='brier_scores', to='markets.market')),
            ('probability', models.FloatField(help_text='The implied confidence that the side bought would win.')),
            ('outcome', models.BooleanField(help_text='Did the side win?')),
            ('score', models.FloatField()),
            ('market_probability', models.FloatField(help_text="The side's price at the trade.")),
            ('market_score', models.FloatField()),
            ('resolved_at', models.DateTimeField()),
            ('scored_at', models.DateTimeField()),
        ], {
            'ordering': ['pk'],
            'indexes': [models.Index(fields=['agent', 'resolved_at'], name='brier_by_agent_and_time'), models.Index(fields=['score', 'id'], name='brier_by_score'), models.Index(fields=['resolved_at', 'id'], name='brier_by_resolution'), models.Index(fields=['scored_at', 'id'], name='brier_by_time'), models.Index(fields=['updated_at'], name='brier_by_change')],
            'constraints': [models.CheckConstraint(condition=models.Q(('score__gte', 0), ('score__lte', 1)), name='brier_score_between_0_and_1'), models.CheckConstraint(condition=models.Q(('probability__gte', 0), ('probability__lte', 1)), name='brier_probability_between_0_and_1')],
        }),
        migrations.CreateModel('Snapshot', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='snapshots', to='agents.agent')),
            ('taken_at', models.DateTimeField()),
            ('cash', foundation.fields.MoneyField()),
            ('positions_value', foundation.fields.MoneyField()),
            ('total_value', foundation.fields.MoneyField()),
            ('pnl', foundation.fields.MoneyField()),
            ('pnl_percent', models.DecimalField(decimal_places=4, max_digits=14)),
            ('brier', models.FloatField(blank=True, null=True)),
            ('resolved_bets', models.PositiveIntegerField()),
            ('open_positions', models.PositiveIntegerField()),
            ('stale_positions', models.PositiveIntegerField(help_text='Positions marked at a price flagged stale.')),
        ], {
            'ordering': ['-taken_at', 'agent_id'],
            'indexes': [models.Index(fields=['-taken_at'], name='snapshot_by_time')],
            'constraints': [models.UniqueConstraint(fields=('agent', 'taken_at'), name='one_snapshot_per_agent_and_instant'), models.CheckConstraint(condition=models.Q(('total_value', django.db.models.expressions.CombinedExpression(models.F('cash'), '+', models.F('positions_value')))), name='snapshot_adds_up')],
        }),
        migrations.CreateModel('FamilyTotal', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('family', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='totals', to='agents.family')),
            ('taken_at', models.DateTimeField()),
            ('agents', models.PositiveIntegerField()),
            ('total', foundation.fields.MoneyField()),
        ], {
            'ordering': ['-taken_at', 'family_id'],
            'constraints': [models.UniqueConstraint(fields=('taken_at', 'family'), name='one_total_per_instant_and_family')],
        }),
        migrations.CreateModel('ForecastScore', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('updated_at', models.DateTimeField(auto_now=True, help_text='Wall-clock time, in replays too.', null=True)),
            ('forecast', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='score', to='agents.forecast')),
            ('brier', models.FloatField(help_text='Mean form: at most 1.')),
            ('log', models.FloatField(help_text='Natural, clipped at 1e-6.')),
            ('spherical', models.FloatField()),
            ('accuracy', models.FloatField(help_text='Was the top option the one that happened? Tied options share the credit.')),
            ('market_brier', models.FloatField(blank=True, help_text='Null where the market had no price.', null=True)),
            ('resolved_at', models.DateTimeField()),
            ('scored_at', models.DateTimeField()),
        ], {
            'ordering': ['pk'],
            'indexes': [models.Index(fields=['updated_at'], name='forecast_score_by_change')],
            'constraints': [models.CheckConstraint(condition=models.Q(('brier__gte', 0), ('brier__lte', 1)), name='forecast_brier_between_0_and_1')],
        }),
        migrations.CreateModel('QuestionDifficulty', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('question', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='difficulties', to='markets.question')),
            ('arm', models.CharField(max_length=20)),
            ('difficulty', models.FloatField(help_text='On the scale of the abilities, whose mean is 0.')),
            ('difficulty_se', models.FloatField(blank=True, null=True)),
            ('discrimination', models.FloatField(blank=True, null=True)),
            ('discrimination_se', models.FloatField(blank=True, null=True)),
        ], {
            'verbose_name_plural': 'question difficulties',
            'ordering': ['question_id', 'arm'],
            'constraints': [models.UniqueConstraint(fields=('question', 'arm'), name='one_difficulty_per_question_and_arm')],
        }),
        migrations.CreateModel('Leaderboard', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('protocol', models.CharField(max_length=20)),
            ('methodology', models.CharField(blank=True, max_length=20)),
            ('arm', models.CharField(blank=True, help_text='Prompt condition; the trading protocol has none.', max_length=20)),
            ('category', models.CharField(blank=True, max_length=120)),
            ('computed_at', models.DateTimeField()),
            ('entries', models.JSONField(encoder=django.core.serializers.json.DjangoJSONEncoder)),
            ('report', models.JSONField(blank=True, default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder, help_text='Results besides the ranking: pairs, curves.')),
        ], {
            'constraints': [models.UniqueConstraint(fields=('protocol', 'methodology', 'arm', 'category'), name='one_leaderboard_per_selection')],
        }),
        migrations.CreateModel('AgentsBoard', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('track', models.CharField(max_length=6)),
            ('protocol', models.CharField(max_length=20)),
            ('computed_at', models.DateTimeField()),
            ('entries', models.JSONField(encoder=django.core.serializers.json.DjangoJSONEncoder)),
            ('report', models.JSONField(encoder=django.core.serializers.json.DjangoJSONEncoder, help_text='Pairs, and what they rest on.')),
        ], {
            'ordering': ['track', 'protocol'],
            'constraints': [models.UniqueConstraint(fields=('track', 'protocol'), name='one_agents_board_per_selection')],
        }),
        migrations.CreateModel('PublishedBoard', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('protocol', models.CharField(max_length=20)),
            ('methodology', models.CharField(blank=True, max_length=20)),
            ('arm', models.CharField(blank=True, help_text='Prompt condition; the trading protocol has none.', max_length=20)),
            ('category', models.CharField(blank=True, max_length=120)),
            ('track', models.CharField(blank=True, help_text='Of external agents; leaderboards have none.', max_length=6)),
            ('at', models.DateTimeField()),
            ('entries', models.JSONField(encoder=django.core.serializers.json.DjangoJSONEncoder)),
            ('report', models.JSONField(encoder=django.core.serializers.json.DjangoJSONEncoder, help_text='Tests, and the numbers that they rest on.')),
            ('sha256', models.CharField(help_text='Of the canonical JSON of entries and report.', max_length=64)),
            ('link', models.ForeignKey(help_text='Of its publication.', on_delete=django.db.models.deletion.PROTECT, related_name='boards', to='agents.chainlink')),
        ], {
            'ordering': ['-at', 'pk'],
            'constraints': [models.UniqueConstraint(fields=('protocol', 'track', 'methodology', 'arm', 'category', 'at'), name='one_published_board_per_selection_and_instant')],
        }),
    ]
