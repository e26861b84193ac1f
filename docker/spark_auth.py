"""Who may submit to the Spark master of docker-compose.yaml: whoever has a token that is signed with SPARK_REST_KEY.

    spark_auth.py master PATH   write the master's Spark properties: its REST server, the filter before it, its recovery
    spark_auth.py token PATH    write a token, for Airflow

Both files are their owner's alone. The key is in the environment, never on a command line.
"""

import base64
import hashlib
import hmac
import json
import os
import sys
from pathlib import Path

FILTER = "org.apache.spark.ui.JWSFilter"
RECOVERY = "/opt/airflow/recovery"


def master(key: str) -> str:
    """Properties in the form of spark-defaults.conf. ``key``: 32 bytes in URL-safe base64, as make_env.py writes them."""
    properties = {
        "spark.master.rest.enabled": "true",
        "spark.master.rest.filters": FILTER,
        f"spark.{FILTER}.param.secretKey": key.rstrip("="),
        "spark.deploy.recoveryMode": "FILESYSTEM",
        "spark.deploy.recoveryDirectory": RECOVERY,
    }
    return "".join(f"{name} {value}\n" for name, value in properties.items())


def token(key: str) -> str:
    """A JSON Web Token without claims, signed with HMAC-SHA-256: that is what the filter asks for."""
    signed = f"{_encoded(json.dumps({'alg': 'HS256'}).encode())}.{_encoded(b'{}')}"
    secret = base64.urlsafe_b64decode(key)
    return f"{signed}.{_encoded(hmac.new(secret, signed.encode('ascii'), hashlib.sha256).digest())}\n"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def main() -> int:
    what, path = sys.argv[1:]
    text = {"master": master, "token": token}[what](os.environ["SPARK_REST_KEY"])
    partial = Path(f"{path}.partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    partial.replace(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
