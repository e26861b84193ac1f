#!/usr/bin/env bash
# Once a day: forget runs, events and logs of Airflow that are older than RETENTION_DAYS (14). A task cannot do that,
# because tasks have no access to Airflow's database.
#
#   maintenance.sh          now, then every day
#   maintenance.sh later    the first time after an hour, beside an Airflow that is just starting
#   maintenance.sh once     now
set -euo pipefail

days=${RETENTION_DAYS:-14}
[ "${1:-}" = later ] && { sleep 1h & wait $!; }

while true; do
  airflow db clean --clean-before-timestamp "$(date --utc --date "-${days} days" +%FT%TZ)" \
    --skip-archive --yes --error-on-cleanup-failure
  find "${AIRFLOW_HOME}/logs" -type f -mtime "+${days}" -delete
  find "${AIRFLOW_HOME}/logs" -mindepth 1 -type d -empty -mtime "+${days}" -delete
  [ "${1:-}" = once ] && break
  sleep 1d &
  wait $! # so that a request to end is heard at once
done
