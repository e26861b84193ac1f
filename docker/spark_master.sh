#!/usr/bin/env bash
# The Spark master, with its REST server behind a filter. Its key is in a file that only this user reads.
set -euo pipefail
here="$(dirname "${BASH_SOURCE[0]}")"

python "${here}/spark_auth.py" master /tmp/spark-master.conf
unset SPARK_REST_KEY
exec spark-class org.apache.spark.deploy.master.Master --host spark-master --port 7077 --webui-port 8080 \
  --properties-file /tmp/spark-master.conf
