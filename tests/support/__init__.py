"""What several tests share; importable as ``support``."""
