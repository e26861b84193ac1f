"""The page in Airflow's navigation, which shows the state of links and its reasons. It only reads."""
