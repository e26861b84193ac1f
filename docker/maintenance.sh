#!/usr/bin/env bash
# Once a day: forget runs and logs of Airflow that are older than RETENTION_DAYS. A task cannot do that, because tasks
# have no access to Airflow's database.
set -euo pipefail

while true; do
  airflow db clean --clean-before-timestamp "$(date --utc --date "-${RETENTION_DAYS} days" +%FT%TZ)" \
    --skip-archive --yes --error-on-cleanup-failure
  find "${AIRFLOW_HOME}/logs" -type f -mtime "+${RETENTION_DAYS}" -delete
  find "${AIRFLOW_HOME}/logs" -mindepth 1 -type d -empty -mtime "+${RETENTION_DAYS}" -delete
  [ "${1:-}" = once ] && break
  sleep 1d &
  wait $! # so that a request to end is heard at once
done
