#!/bin/sh
# The role of servers: a plain one, which owns nothing and cannot look past the walls between vaults.
set -eu
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set password="$SERVER_PASSWORD" <<'SQL'
CREATE ROLE quaid_server LOGIN PASSWORD :'password';
SQL
