"""Submitting, finding and ending the Spark applications that do the copying. Imports neither Spark nor Airflow."""
