#!/usr/bin/env bash
# Runs once, when the database is made: the role that metrics are read with. It may look at everything and change nothing.
set -euo pipefail
psql -v ON_ERROR_STOP=1 -q --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
    -v password="$(cat /run/lockstock/exporter-for-postgres)" <<'SQL'
create role exporter login password :'password' connection limit 5;
grant pg_monitor, pg_read_all_data to exporter;
SQL
