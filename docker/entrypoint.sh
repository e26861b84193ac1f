#!/bin/bash
# What a container of the image runs. Spark on Kubernetes calls it with `driver` or `executor`, and tells the rest in
# variables; `strait` is Strait's own command; everything else is Airflow's.
set -euo pipefail

case "${1:-}" in
  driver | executor) role="$1" && shift ;;
  strait) exec "$@" ;;
  *) exec /entrypoint "$@" ;;
esac

export SPARK_HOME=/opt/spark
if [ "$role" = driver ]; then
  # The JVM inherits that these signals are ignored. So the Python driver alone takes them, stops its query, and all end
  # with 0.
  trap "" TERM INT
  exec "$SPARK_HOME/bin/spark-submit" --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
    --deploy-mode client "$@"
fi

mapfile -t options < <(env | grep '^SPARK_JAVA_OPT_' | sort -t_ -k4 -n | cut -d= -f2-)
exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
  -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_HOME/jars/*" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
