#!/usr/bin/env bash
# Before Airflow starts: its database is brought to this version, the login is written down, and what is missing of
# Variables and Connections is put there. What somebody has changed in the UI stays.
set -euo pipefail
here="$(dirname "${BASH_SOURCE[0]}")"

airflow db migrate

umask 077
python -c 'import json, os, sys; json.dump({"admin": os.environ["AIRFLOW_ADMIN_PASSWORD"]}, sys.stdout)' \
  >"${AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE}"
python "${here}/spark_auth.py" token "$(dirname "${AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE}")/spark_token"

airflow variables import --action-on-existing-key skip "${here}/variables.json"
airflow connections import "${here}/connections.json"
