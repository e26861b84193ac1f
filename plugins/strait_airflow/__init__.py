"""Airflow's side of Strait: a thin layer between Airflow's tasks, triggers, Variables and Connections and `strait`.

Every Airflow process loads plugin modules once. So the modules here import `strait` inside functions; the package
`page` is imported on its first request.
"""
