import django.core.serializers.json
import django.db.models.deletion
import django.db.models.expressions
import foundation.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_initial'),
        ('markets', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='BrierScore',
            fields=[
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
            ],
            options={
                'ordering': ['pk'],
                'indexes': [models.Index(fields=['agent', 'resolved_at'], name='brier_by_agent_and_time'), models.Index(fields=['score', 'id'], name='brier_by_score'), models.Index(fields=['resolved_at', 'id'], name='brier_by_resolution'), models.Index(fields=['scored_at', 'id'], name='brier_by_time'), models.Index(fields=['updated_at'], name='brier_by_change')],
                'constraints': [models.CheckConstraint(condition=models.Q(('score__gte', 0), ('score__lte', 1)), name='brier_score_between_0_and_1'), models.CheckConstraint(condition=models.Q(('probability__gte', 0), ('probability__lte', 1)), name='brier_probability_between_0_and_1')],
            },
        ),
        migrations.CreateModel(
            name='Snapshot',
            fields=[
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
            ],
            options={
                'ordering': ['-taken_at', 'agent_id'],
                'indexes': [models.Index(fields=['-taken_at'], name='snapshot_by_time')],
                'constraints': [models.UniqueConstraint(fields=('agent', 'taken_at'), name='one_snapshot_per_agent_and_instant'), models.CheckConstraint(condition=models.Q(('total_value', django.db.models.expressions.CombinedExpression(models.F('cash'), '+', models.F('positions_value')))), name='snapshot_adds_up')],
            },
        ),
        migrations.CreateModel(
            name='FamilyTotal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('family', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='totals', to='agents.family')),
                ('taken_at', models.DateTimeField()),
                ('agents', models.PositiveIntegerField()),
                ('total', foundation.fields.MoneyField()),
            ],
            options={
                'ordering': ['-taken_at', 'family_id'],
                'constraints': [models.UniqueConstraint(fields=('taken_at', 'family'), name='one_total_per_instant_and_family')],
            },
        ),
        migrations.CreateModel(
            name='ForecastScore',
            fields=[
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
            ],
            options={
                'ordering': ['pk'],
                'indexes': [models.Index(fields=['updated_at'], name='forecast_score_by_change')],
                'constraints': [models.CheckConstraint(condition=models.Q(('brier__gte', 0), ('brier__lte', 1)), name='forecast_brier_between_0_and_1')],
            },
        ),
        migrations.CreateModel(
            name='QuestionDifficulty',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('question', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='difficulties', to='markets.question')),
                ('arm', models.CharField(max_length=20)),
                ('difficulty', models.FloatField(help_text='On the scale of the abilities, whose mean is 0.')),
                ('difficulty_se', models.FloatField(blank=True, null=True)),
                ('discrimination', models.FloatField(blank=True, null=True)),
                ('discrimination_se', models.FloatField(blank=True, null=True)),
            ],
            options={
                'verbose_name_plural': 'question difficulties',
                'ordering': ['question_id', 'arm'],
                'constraints': [models.UniqueConstraint(fields=('question', 'arm'), name='one_difficulty_per_question_and_arm')],
            },
        ),
        migrations.CreateModel(
            name='Leaderboard',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('protocol', models.CharField(max_length=20)),
                ('methodology', models.CharField(blank=True, max_length=20)),
                ('arm', models.CharField(blank=True, help_text='Prompt condition; the trading protocol has none.', max_length=20)),
                ('category', models.CharField(blank=True, max_length=120)),
                ('computed_at', models.DateTimeField()),
                ('entries', models.JSONField(encoder=django.core.serializers.json.DjangoJSONEncoder)),
                ('report', models.JSONField(blank=True, default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder, help_text='Results besides the ranking: pairs, curves.')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('protocol', 'methodology', 'arm', 'category'), name='one_leaderboard_per_selection')],
            },
        ),
        migrations.CreateModel(
            name='AgentsBoard',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('track', models.CharField(max_length=6)),
                ('protocol', models.CharField(max_length=20)),
                ('period', models.CharField(max_length=3)),
                ('computed_at', models.DateTimeField()),
                ('entries', models.JSONField(encoder=django.core.serializers.json.DjangoJSONEncoder)),
                ('report', models.JSONField(encoder=django.core.serializers.json.DjangoJSONEncoder, help_text='Pairs, and what they rest on.')),
            ],
            options={
                'ordering': ['track', 'protocol', 'period'],
                'constraints': [models.UniqueConstraint(fields=('track', 'protocol', 'period'), name='one_agents_board_per_selection')],
            },
        ),
        migrations.CreateModel(
            name='ImportCollection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=100, unique=True)),
                ('name', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField()),
                ('changed_at', models.DateTimeField(help_text='Time of the last added forecast.')),
                ('people', models.JSONField(blank=True, default=list, help_text='The forecasters who are people, or medians of people, by name.')),
            ],
            options={
                'ordering': ['slug'],
            },
        ),
        migrations.CreateModel(
            name='Export',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('selection', models.CharField(help_text='Canonical text of cohort, window and formats.', max_length=200)),
                ('cohort', models.PositiveIntegerField(blank=True, help_text="The cohort's number; null for all cohorts.", null=True)),
                ('start', models.DateTimeField(blank=True, null=True)),
                ('end', models.DateTimeField(blank=True, null=True)),
                ('formats', models.CharField(help_text='csv, parquet or both with a comma.', max_length=40)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('building', 'Building'), ('completed', 'Completed'), ('failed', 'Failed')], default='queued', max_length=10)),
                ('requested_by', models.CharField(max_length=150)),
                ('requested_at', models.DateTimeField()),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('rows', models.PositiveBigIntegerField(blank=True, null=True)),
                ('bytes', models.PositiveBigIntegerField(blank=True, help_text='Size of the zip file.', null=True)),
                ('sha256', models.CharField(blank=True, help_text='Hash of the zip file.', max_length=64)),
                ('error', models.TextField(blank=True)),
            ],
            options={
                'ordering': ['-pk'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ['queued', 'building'])), fields=('selection',), name='one_unfinished_export_per_selection'), models.CheckConstraint(condition=models.Q(models.Q(('status', 'completed'), _negated=True), models.Q(('bytes__isnull', False), ('rows__isnull', False), models.Q(('sha256', ''), _negated=True)), _connector='OR'), name='completed_export_has_file')],
            },
        ),
        migrations.CreateModel(
            name='ForecastImport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='imports', to='scoring.importcollection')),
                ('format', models.CharField(max_length=20)),
                ('files', models.JSONField(help_text='Name, SHA-256 and bytes of each; the first holds the forecasts.')),
                ('sha256', models.CharField(help_text='Hash of the file, or of the digests of all files in order.', max_length=64)),
                ('imported_at', models.DateTimeField()),
                ('rows', models.PositiveIntegerField(default=0, help_text='Records in the file.')),
                ('rejected', models.PositiveIntegerField(default=0, help_text='Rejected records.')),
                ('forecasts', models.PositiveIntegerField(default=0, help_text='Probabilities added.')),
                ('completed', models.BooleanField(default=False, help_text='False while the import runs or after it was interrupted.')),
            ],
            options={
                'ordering': ['pk'],
                'constraints': [models.UniqueConstraint(fields=('collection', 'format', 'sha256'), name='one_import_per_contents'), models.CheckConstraint(condition=models.Q(('rejected__lte', models.F('rows'))), name='import_rejects_no_more_than_it_read')],
            },
        ),
        migrations.CreateModel(
            name='ImportedQuestion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='questions', to='scoring.importcollection')),
                ('question', models.CharField(max_length=300)),
                ('title', models.TextField(blank=True)),
                ('options', models.JSONField(blank=True, default=list)),
                ('happened', models.JSONField(blank=True, help_text='Options that happened; null while it is open.', null=True)),
                ('category', models.CharField(blank=True, max_length=200)),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['question'],
                'constraints': [models.UniqueConstraint(fields=('collection', 'question'), name='one_description_per_imported_question')],
            },
        ),
        migrations.CreateModel(
            name='ImportLeaderboard',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('collection', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='leaderboard', to='scoring.importcollection')),
                ('computed_at', models.DateTimeField()),
                ('report', models.JSONField(blank=True, encoder=django.core.serializers.json.DjangoJSONEncoder, null=True)),
                ('forecasters', models.PositiveIntegerField()),
                ('questions', models.PositiveIntegerField(help_text='Questions with forecasts or a description.')),
                ('open_questions', models.PositiveIntegerField(help_text='Questions with forecasts and without an outcome.')),
                ('probabilities', models.PositiveIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='RejectedRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('forecast_import', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='rejections', to='scoring.forecastimport')),
                ('row', models.PositiveIntegerField(help_text='Line in the file, or place in a JSON list, from 1.')),
                ('reason', models.TextField()),
            ],
            options={
                'ordering': ['forecast_import_id', 'row'],
                'constraints': [models.UniqueConstraint(fields=('forecast_import', 'row'), name='one_reason_per_rejected_row')],
            },
        ),
        migrations.CreateModel(
            name='ImportedForecast',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='forecasts', to='scoring.importcollection')),
                ('forecast_import', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='probabilities', to='scoring.forecastimport')),
                ('row', models.PositiveIntegerField()),
                ('forecaster', models.CharField(max_length=200)),
                ('question', models.CharField(max_length=300)),
                ('option', models.CharField(max_length=300)),
                ('probability', models.FloatField()),
                ('outcome', models.FloatField(blank=True, help_text='Null while the question is open.', null=True)),
                ('odds', models.FloatField(blank=True, null=True)),
                ('no_odds', models.FloatField(blank=True, null=True)),
                ('event', models.CharField(blank=True, max_length=300)),
                ('category', models.CharField(blank=True, max_length=200)),
                ('made_at', models.DateTimeField(blank=True, null=True)),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('weight', models.FloatField(default=1.0)),
                ('exclusive', models.BooleanField(default=True)),
            ],
            options={
                'ordering': ['pk'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('made_at__isnull', False)), fields=('collection', 'question', 'forecaster', 'option', 'made_at'), name='one_imported_probability_per_option_and_time'), models.UniqueConstraint(condition=models.Q(('made_at__isnull', True)), fields=('collection', 'question', 'forecaster', 'option'), name='one_imported_probability_per_option_without_time'), models.CheckConstraint(condition=models.Q(('probability__gte', 0), ('probability__lte', 1)), name='imported_probability_between_0_and_1'), models.CheckConstraint(condition=models.Q(('outcome__isnull', True), models.Q(('outcome__gte', 0), ('outcome__lte', 1)), _connector='OR'), name='imported_outcome_between_0_and_1'), models.CheckConstraint(condition=models.Q(models.Q(('odds__isnull', True), models.Q(('odds__gt', 0), ('odds__lt', 1)), _connector='OR'), models.Q(('no_odds__isnull', True), models.Q(('no_odds__gt', 0), ('no_odds__lt', 1)), _connector='OR')), name='imported_odds_inside_0_and_1'), models.CheckConstraint(condition=models.Q(('weight__gt', 0)), name='imported_weight_above_0')],
            },
        ),
    ]
