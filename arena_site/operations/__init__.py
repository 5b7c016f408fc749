"""The running site: its processes, queue, workers, health, alerts and backups."""
