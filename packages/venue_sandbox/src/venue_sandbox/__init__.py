"""A whole season on one machine: a local stand-in for Polymarket's Gamma and CLOB, for Kalshi and for OpenRouter.

Everything it answers is a function of the seed, its clock, the request and what a client has told it; only the bills
add up. It knows nothing of the arena, so the arena meets it only over HTTP, as it would meet the real services.

`POST /sandbox/clock` sets its clock, `/sandbox/models` the last day of a model, `/sandbox/key` the key's limit and the
credits, `/sandbox/faults` what is wrong with the next answers (`openrouter.ANSWER_FAULTS` and `ENDPOINT_FAULTS`). The
script: `/sandbox/markets` lists a market, `/sandbox/prices` moves one and `/sandbox/resolutions` resolves it,
`/sandbox/answers` queues answers of a model, `/sandbox/outages` takes services down and markets away (`controls`).
In Python it is a `script.Script`, which `server.Sandbox` is given.
"""
