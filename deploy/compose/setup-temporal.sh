#!/bin/sh
# Make or update Temporal's databases, as often as you like; then the namespace is made by the server's side.
set -eu
for database in temporal temporal_visibility; do
    case $database in temporal) schema=temporal ;; *) schema=visibility ;; esac
    tool="temporal-sql-tool --plugin postgres12 --ep postgres --port 5432 --user temporal --database $database"
    $tool create-database || true # it is there already
    $tool setup-schema --version 0.0 || true
    $tool update-schema --schema-dir "/etc/temporal/schema/postgresql/v12/$schema/versioned"
done
