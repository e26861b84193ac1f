"""The page in Airflow's navigation: what links do and why. It only reads."""
