"""The ground of every app; it knows no domain.

- `http`: JSON over HTTP with a total deadline, retries and one error class
- `fields`: exact decimal model fields (money, shares, prices, costs); `raw_sql`: the same values in hand-written SQL
- `guards`: database triggers that protect records; `locks`: rows and names locked until a transaction ends
- `bulk`: reads in batches, updates of changed rows
- `models`, `services`: runs, alerts and notices, the records of operation
- `rest`: bases of the API (view sets, serializers, filters, pagination); `admin`: bases of the admin
- `commands`: base of management commands; `clock`: their present time; `failpoints`: where tests kill them
- `json_lines`: text and decimals in prompts
"""
