"""Airflow's side of Strait: thin glue between its tasks, triggers, Variables and Connections and the package `strait`.

Airflow loads plugin modules once for each process. So everything here imports `strait` inside functions.
"""
