import foundation.row_hashes
import django.db.models.deletion
import foundation.fields
import markets.sources.registry
from decimal import Decimal
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='CacheVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scope', models.CharField(choices=[('competition', 'families, cohorts, methodologies and agents'), ('snapshots', 'snapshots'), ('leaderboards', 'current leaderboards')], max_length=20, unique=True)),
                ('version', models.CharField(max_length=32)),
            ],
            options={
                'ordering': ['scope'],
            },
        ),
        migrations.CreateModel(
            name='Universe',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('week_start', models.DateTimeField()),
                ('methodology', models.CharField(help_text="The methodology's version.", max_length=20)),
                ('frozen_at', models.DateTimeField()),
                ('sha256', models.CharField(max_length=64)),
                ('market_block', models.TextField(help_text='The MARKETS block of every prompt of the run, byte for byte.')),
            ],
            options={
                'ordering': ['-week_start'],
                'constraints': [models.UniqueConstraint(fields=('week_start', 'methodology'), name='one_universe_per_week_and_methodology')],
            },
        ),
        migrations.CreateModel(
            name='VenueTraffic',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('venue', models.CharField(max_length=20, unique=True)),
                ('requests', models.BigIntegerField(default=0)),
                ('failures', models.BigIntegerField(default=0)),
                ('latency_s', models.FloatField(default=0, help_text='Mean of the last run that asked, in seconds.')),
            ],
            options={
                'ordering': ['venue'],
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='QuestionSet',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateTimeField(help_text='00:00 UTC of the day.')),
                ('methodology', models.CharField(help_text="The methodology's version.", max_length=20)),
                ('part', models.PositiveSmallIntegerField(default=0)),
                ('universe', models.ForeignKey(blank=True, help_text="On the day of the week's decisions, the universe whose prices the set uses.", null=True, on_delete=django.db.models.deletion.PROTECT, related_name='question_sets', to='markets.universe')),
                ('frozen_at', models.DateTimeField()),
                ('sha256', models.CharField(max_length=64)),
                ('evidence_dropped', models.JSONField(blank=True, default=dict, help_text='Reason to the number of texts that were dropped for it.')),
                ('evidence_sha256', models.CharField(blank=True, help_text='SHA-256 over its evidence; empty where none was gathered.', max_length=64)),
                ('left_out', models.JSONField(blank=True, default=dict, help_text='Condition to the reason why it is not asked on this day though it is on.')),
            ],
            options={
                'ordering': ['-day', 'part'],
                'constraints': [models.UniqueConstraint(fields=('day', 'methodology', 'part'), name='one_question_set_per_day_methodology_and_part')],
            },
        ),
        migrations.CreateModel(
            name='QuestionBatch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('question_set', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='batches', to='markets.questionset')),
                ('arm', models.CharField(max_length=20)),
                ('number', models.PositiveSmallIntegerField()),
                ('block', models.TextField(help_text='QUESTIONS')),
                ('evidence_block', models.TextField(blank=True, help_text='EVIDENCE; empty in a condition without it.')),
            ],
            options={
                'ordering': ['question_set_id', 'number', 'arm'],
                'constraints': [models.UniqueConstraint(fields=('question_set', 'arm', 'number'), name='one_batch_per_set_arm_and_number')],
            },
        ),
        migrations.CreateModel(
            name='Market',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('updated_at', models.DateTimeField(auto_now=True, help_text='Wall-clock time, in replays too.', null=True)),
                ('source', models.CharField(choices=markets.sources.registry.source_choices, max_length=20)),
                ('external_id', models.CharField(max_length=120)),
                ('condition_id', models.CharField(blank=True, max_length=120)),
                ('slug', models.CharField(blank=True, max_length=300)),
                ('question', models.TextField()),
                ('description', models.TextField(blank=True)),
                ('category', models.CharField(blank=True, db_index=True, max_length=120)),
                ('event_id', models.CharField(blank=True, db_index=True, max_length=120)),
                ('event_title', models.TextField(blank=True)),
                ('event_exclusive', models.BooleanField(blank=True, help_text='The venue states that at most one market of its event resolves to Yes.', null=True)),
                ('option', models.TextField(blank=True, default='', help_text="The market's name within its event.")),
                ('kind', models.CharField(choices=[('binary', 'Binary'), ('multi', 'Multi')], max_length=10)),
                ('status', models.CharField(choices=[('active', 'Active'), ('closed', 'Closed'), ('resolved', 'Resolved'), ('cancelled', 'Cancelled')], default='active', max_length=10)),
                ('accepts_orders', models.BooleanField(default=True)),
                ('oracle_status', models.CharField(blank=True, max_length=40)),
                ('unresolved_reason', models.TextField(blank=True, default='', help_text='Why the closed market did not count as resolved when it was last checked.')),
                ('volume', foundation.fields.MoneyField(default=Decimal('0'))),
                ('liquidity', foundation.fields.MoneyField(blank=True, null=True)),
                ('fee_rate', foundation.fields.RateField(blank=True, help_text="Of the venue's fee for takers; null if it states none.", null=True)),
                ('fee_exponent', foundation.fields.RateField(blank=True, null=True)),
                ('closes_at', models.DateTimeField(blank=True, help_text='Scheduled close, for display only.', null=True)),
                ('created_at', models.DateTimeField(blank=True, help_text='When its venue created it, as the venue states.', null=True)),
                ('first_seen_at', models.DateTimeField()),
                ('listed_at', models.DateTimeField(blank=True, help_text='The last sync that listed it as open.', null=True)),
                ('refreshed_at', models.DateTimeField(db_index=True, help_text='When it was last read from its source.')),
                ('traded', models.BooleanField(default=False, help_text='An agent traded it: it is refreshed, and priced with snapshots, until it is final.')),
                ('has_questions', models.BooleanField(default=False, help_text='A question refers to it: it is refreshed until it is final.')),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('resolved_at', models.DateTimeField(blank=True, null=True)),
                ('volume_24h', foundation.fields.MoneyField(blank=True, help_text='US dollars traded in the last 24 hours, if stated.', null=True)),
            ],
            options={
                'ordering': ['-volume', 'pk'],
                'indexes': [models.Index(fields=['status', '-volume'], name='market_by_status_and_volume'), models.Index(fields=['-volume', 'id'], name='market_by_volume'), models.Index(fields=['liquidity', 'id'], name='market_by_liquidity'), models.Index(fields=['closes_at', 'id'], name='market_by_close'), models.Index(fields=['resolved_at', 'id'], name='market_by_resolution')],
                'constraints': [models.UniqueConstraint(fields=('source', 'external_id'), name='one_market_per_source_and_id'), models.CheckConstraint(condition=models.Q(models.Q(('closed_at__isnull', True), ('resolved_at__isnull', True), ('status', 'active')), models.Q(('closed_at__isnull', False), ('resolved_at__isnull', True), ('status', 'closed')), models.Q(('closed_at__isnull', False), ('resolved_at__isnull', False), ('status__in', ['resolved', 'cancelled'])), _connector='OR'), name='market_times_match_its_status')],
            },
        ),
        migrations.CreateModel(
            name='Outcome',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('updated_at', models.DateTimeField(auto_now=True, help_text='Wall-clock time, in replays too.', null=True)),
                ('market', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='outcomes', to='markets.market')),
                ('index', models.PositiveSmallIntegerField()),
                ('name', models.CharField(max_length=300)),
                ('side', models.CharField(help_text="Name used in bets: YES, NO, or the outcome's name.", max_length=300)),
                ('token_id', models.CharField(blank=True, max_length=120)),
                ('quote', foundation.fields.PriceField(blank=True, help_text="The price in the venue's catalogue, as last read.", null=True)),
                ('quote_at', models.DateTimeField(blank=True, null=True)),
                ('bid', foundation.fields.PriceField(blank=True, null=True)),
                ('ask', foundation.fields.PriceField(blank=True, null=True)),
                ('price', foundation.fields.PriceField(blank=True, help_text='The last accepted price.', null=True)),
                ('price_at', models.DateTimeField(blank=True, help_text='When a price was last accepted.', null=True)),
                ('price_source', models.CharField(blank=True, choices=[('midpoint', 'midpoint of the book'), ('gamma', 'Gamma price'), ('trade', 'last trade at the venue'), ('retained', 'last accepted price, retained')], max_length=10)),
                ('price_stale', models.BooleanField(default=False)),
            ],
            options={
                'ordering': ['market_id', 'index'],
                'constraints': [models.UniqueConstraint(fields=('market', 'index'), name='one_outcome_per_index'), models.UniqueConstraint(fields=('market', 'side'), name='one_outcome_per_side'), models.CheckConstraint(condition=models.Q(('price__isnull', True), models.Q(('price__gte', 0), ('price__lte', 1)), _connector='OR'), name='price_between_0_and_1')],
            },
        ),
        migrations.CreateModel(
            name='UniverseEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('universe', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='markets.universe')),
                ('market', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='universe_entries', to='markets.market')),
                ('position', models.PositiveIntegerField()),
                ('bettable', models.BooleanField(help_text='False if the market is listed only because an agent of the run holds it.')),
                ('open', models.BooleanField(help_text='False if the market was closed at the freeze and awaited its resolution.')),
                ('prices', models.JSONField(help_text='Side to decimal string.')),
                ('sources', models.JSONField(help_text="Side to its price's `source` and whether it was `stale`.")),
            ],
            options={
                'ordering': ['universe_id', 'position'],
                'constraints': [models.UniqueConstraint(fields=('universe', 'market'), name='one_entry_per_universe_and_market')],
            },
        ),
        migrations.CreateModel(
            name='OrderBook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('universe', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='order_books', to='markets.universe')),
                ('outcome', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='order_books', to='markets.outcome')),
                ('captured_at', models.DateTimeField(help_text='By the real clock.')),
                ('bids', models.JSONField(help_text='[[price, shares], …], the highest price first.')),
                ('asks', models.JSONField(help_text='[[price, shares], …], the lowest price first.')),
                ('fee_rate', foundation.fields.RateField(blank=True, help_text="Of the taker's fee; null where the venue states none.", null=True)),
                ('fee_exponent', foundation.fields.RateField(blank=True, null=True)),
                ('row_sha256', foundation.row_hashes.RowHashField()),
            ],
            options={
                'ordering': ['universe_id', 'pk'],
                'constraints': [models.UniqueConstraint(fields=('universe', 'outcome'), name='one_order_book_per_universe_and_outcome')],
            },
        ),
        migrations.CreateModel(
            name='Question',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('updated_at', models.DateTimeField(auto_now=True, help_text='Wall-clock time, in replays too.', null=True)),
                ('source', models.CharField(choices=markets.sources.registry.source_choices, max_length=20)),
                ('event_key', models.CharField(db_index=True, help_text='Shared by the questions of one event.', max_length=200)),
                ('market', models.ForeignKey(blank=True, help_text='Its only market; null where it joins the markets of an event.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='questions', to='markets.market')),
                ('options_sha256', models.CharField(help_text='Hash of the source, the event or market, and the options.', max_length=64)),
                ('text', models.TextField()),
                ('rules', models.TextField(blank=True)),
                ('category', models.CharField(blank=True, db_index=True, max_length=120)),
                ('exclusive', models.BooleanField(help_text='Exactly one option happens; otherwise each option happens or not on its own.')),
                ('status', models.CharField(choices=[('open', 'Open'), ('closed', 'Closed'), ('resolved', 'Resolved'), ('cancelled', 'Cancelled')], default='open', max_length=10)),
                ('closes_at', models.DateTimeField(blank=True, help_text='Scheduled close, which follows its markets while it is open.', null=True)),
                ('first_asked_at', models.DateTimeField()),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('resolved_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [models.Index(fields=['first_asked_at', 'id'], name='question_by_first_day'), models.Index(fields=['closes_at', 'id'], name='question_by_close'), models.Index(fields=['resolved_at', 'id'], name='question_by_resolution')],
                'constraints': [models.UniqueConstraint(fields=('options_sha256',), name='one_question_per_event_and_options'), models.CheckConstraint(condition=models.Q(models.Q(('resolved_at__isnull', False), ('status__in', ['resolved', 'cancelled'])), models.Q(('resolved_at__isnull', True), ('status__in', ['open', 'closed'])), _connector='OR'), name='question_times_match_its_status')],
            },
        ),
        migrations.CreateModel(
            name='PriceObservation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('outcome', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='observations', to='markets.outcome')),
                ('observed_at', models.DateTimeField()),
                ('price', foundation.fields.PriceField(blank=True, help_text='The decided price; null if there is none.', null=True)),
                ('source', models.CharField(blank=True, choices=[('midpoint', 'midpoint of the book'), ('gamma', 'Gamma price'), ('trade', 'last trade at the venue'), ('retained', 'last accepted price, retained')], max_length=10)),
                ('stale', models.BooleanField(default=False)),
                ('reason', models.CharField(max_length=300)),
                ('midpoint', foundation.fields.PriceField(blank=True, null=True)),
                ('gamma', foundation.fields.PriceField(blank=True, null=True)),
                ('bid', foundation.fields.PriceField(blank=True, null=True)),
                ('ask', foundation.fields.PriceField(blank=True, null=True)),
                ('row_sha256', foundation.row_hashes.RowHashField()),
            ],
            options={
                'ordering': ['-observed_at', '-pk'],
                'indexes': [models.Index(fields=['outcome', '-observed_at'], name='price_by_outcome_and_time'), models.Index(fields=['-observed_at'], name='price_by_time')],
                'constraints': [models.CheckConstraint(condition=models.Q(('price__isnull', True), models.Q(('price__gte', 0), ('price__lte', 1)), _connector='OR'), name='observed_price_between_0_and_1')],
            },
        ),
        migrations.CreateModel(
            name='QuestionOption',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('question', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='options', to='markets.question')),
                ('index', models.PositiveSmallIntegerField()),
                ('name', models.CharField(max_length=300)),
                ('outcome', models.ForeignKey(blank=True, help_text='Null where no market stands for it, as for "None of these".', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='question_options', to='markets.outcome')),
                ('happened', models.BooleanField(blank=True, null=True)),
            ],
            options={
                'ordering': ['question_id', 'index'],
                'constraints': [models.UniqueConstraint(fields=('question', 'index'), name='one_option_per_index'), models.UniqueConstraint(fields=('question', 'name'), name='one_option_per_name')],
            },
        ),
        migrations.CreateModel(
            name='QuestionEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('question_set', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='markets.questionset')),
                ('question', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='markets.question')),
                ('position', models.PositiveIntegerField()),
                ('batch', models.PositiveSmallIntegerField(help_text='The number of its batch, the same in each arm.')),
                ('reason', models.CharField(choices=[('selected', 'selected by the rule'), ('traded', 'an agent bet on it or holds it')], max_length=10)),
                ('prices', models.JSONField(help_text='Option to `price` (mid), `ask` and `no_ask`, decimal strings or null, and `stale`.')),
                ('closes_on', models.DateField(blank=True, help_text='Day of the scheduled close at the freeze, as prompts show it.', null=True)),
                ('duplicate', models.ForeignKey(blank=True, help_text='The same question at another venue, which is not asked.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='markets.question')),
                ('facts', models.JSONField(blank=True, default=dict, help_text='What a prompt may show besides: `event`, `volume_24h_usd`, and `spread` by option.')),
            ],
            options={
                'ordering': ['question_set_id', 'position'],
                'constraints': [models.UniqueConstraint(fields=('question_set', 'question'), name='one_entry_per_set_and_question'), models.UniqueConstraint(fields=('question_set', 'position'), name='one_entry_per_set_and_position')],
            },
        ),
        migrations.AddField(
            model_name='market',
            name='winning_outcome',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='markets.outcome'),
        ),
        migrations.AddConstraint(
            model_name='market',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'resolved'), ('winning_outcome__isnull', False)), models.Q(models.Q(('status', 'resolved'), _negated=True), ('winning_outcome__isnull', True)), _connector='OR'), name='resolved_market_has_a_winner'),
        ),
        migrations.CreateModel(
            name='EvidenceSnippet',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveSmallIntegerField(help_text='Its place among the snippets of its question, from 1.')),
                ('title', models.CharField(blank=True, max_length=500)),
                ('url', models.TextField(blank=True)),
                ('source', models.CharField(blank=True, help_text='The publisher, or the host of the address.', max_length=200)),
                ('published_at', models.DateTimeField(blank=True, help_text='As its source states; null if it does not.', null=True)),
                ('retrieved_at', models.DateTimeField(help_text='Never after the freeze.')),
                ('text', models.TextField()),
                ('sha256', models.CharField(help_text='SHA-256 of the text.', max_length=64)),
                ('states_outcome', models.BooleanField(blank=True, help_text='Whether it states what happened; null until the question has resolved.', null=True)),
                ('audited_at', models.DateTimeField(blank=True, null=True)),
                ('entry', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='snippets', to='markets.questionentry')),
                ('row_sha256', foundation.row_hashes.RowHashField(but=('states_outcome', 'audited_at'))),
            ],
            options={
                'ordering': ['entry_id', 'position'],
                'constraints': [models.UniqueConstraint(fields=('entry', 'position'), name='one_snippet_per_entry_and_position')],
            },
        ),
    ]
