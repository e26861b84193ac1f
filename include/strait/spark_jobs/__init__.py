"""Programs that spark-submit runs. Their directory comes first on their path, so it holds nothing else."""
