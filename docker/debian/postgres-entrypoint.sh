#!/bin/bash
# The part of the official image's contract that compose.yaml uses: on an empty data folder, makes the database with
# POSTGRES_USER, POSTGRES_PASSWORD_FILE, POSTGRES_DB, POSTGRES_INITDB_ARGS and runs /docker-entrypoint-initdb.d/*.sh.
set -euo pipefail
umask 077

prepare() {
    # Moved into place when it is complete: an interrupted first start begins anew.
    local new=$PGDATA.new
    rm -rf "$new"
    # shellcheck disable=SC2086 # several arguments
    initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust \
        ${POSTGRES_INITDB_ARGS:-} -D "$new"
    echo 'host all all all scram-sha-256' >>"$new/pg_hba.conf"
    pg_ctl -D "$new" -w -o "-c listen_addresses=''" start
    [ "$POSTGRES_DB" = postgres ] || createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
    local script
    for script in /docker-entrypoint-initdb.d/*.sh; do
        [ -e "$script" ] && bash "$script"
    done
    pg_ctl -D "$new" -w -m fast stop
    mv "$new" "$PGDATA"
}

if [ "${1:-}" = postgres ] && [ ! -e "$PGDATA/PG_VERSION" ]; then prepare; fi
[ "${1:-}" = postgres ] && set -- "$@" -c "listen_addresses=*" -c unix_socket_directories=/var/run/postgresql
exec "$@"
