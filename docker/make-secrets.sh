#!/usr/bin/env bash
# Makes the passwords of a stack, once, each file readable by the one user that needs it.
set -euo pipefail
cd /run/lockstock
umask 0277

password() { head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }
# File by file: a start that was interrupted is repaired by the next one. The directory is ours, the files are not.
give() { # give <file> <uid> <text>
    rm -f "$1.new"
    printf '%s\n' "$3" >"$1.new"
    chown "$2:$2" "$1.new"
    mv "$1.new" "$1"
}

if [ ! -e done ]; then
    main=$(password)
    exporter=$(password)
    give postgres 999 "$main"                                  # the server: its superuser's
    give pgpass 10001 "*:*:*:lockstock:$main"                  # order-service and audit
    give exporter 65534 "$exporter"                            # postgres-exporter
    give exporter-for-postgres 999 "$exporter"                 # the server makes the role
    : >done
fi
