#!/usr/bin/env bash
# Whether the component of Airflow that this container runs is healthy. Anything else is, as long as it runs.
#
#   healthcheck.sh [FILE WITH THE COMMAND LINE OF THE CONTAINER]
set -euo pipefail

answers() { exec curl --fail --silent --max-time 10 --output /dev/null "$1"; }
beats() { exec airflow jobs check --job-type "$1" --hostname "$(hostname)"; }

case " $(tr '\0' ' ' <"${1:-/proc/1/cmdline}") " in
  *" api-server "*) answers http://localhost:8080/api/v2/monitor/health ;;
  *" scheduler "*) answers http://localhost:8974/health ;;
  *" dag-processor "*) beats DagProcessorJob ;;
  *" triggerer "*) beats TriggererJob ;;
esac
