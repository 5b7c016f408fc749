# Forecaster Arena: one image for web, worker and one-off commands.
FROM python:3.11.13-slim-trixie AS build
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PROJECT_ENVIRONMENT=/app/.venv
RUN pip install --no-cache-dir uv==0.13.9
WORKDIR /app
# Dependencies change less often than the code: they get a layer of their own.
COPY pyproject.toml ./
COPY packages ./packages
COPY fixtures ./fixtures
RUN uv sync --no-editable
COPY . .
# The wheels that /kit/ serves.
RUN SECRET_KEY=build-only-0123456789-abcdefghij-klmnopqrst uv run --no-sync manage.py build_kit

FROM python:3.11.13-slim-trixie
ENV PATH=/app/.venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Debian keeps only the newest version of a package, so none is pinned.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends postgresql-client \
    && rm -rf /var/lib/apt/lists/* && useradd --system --uid 10001 --home-dir /app arena \
    && install --directory --owner arena /data
COPY --from=build /app /app
WORKDIR /app
USER 10001
ENV DATABASE_URL=sqlite:////data/arena.sqlite3 ARENA_EXPORT_DIR=/data/exports ARENA_SPOOL_DIR=/data/spool ARENA_BACKUP_DIR=/data/backups
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD \
    ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["gunicorn", "arena_site.wsgi", "--preload", "--worker-class", "gthread", "--workers", "2", "--threads", "8", "--no-control-socket", "--bind", "0.0.0.0:8000"]
