"""``python sign_in.py URL AUTHORITY CLIENT SECRET_FILE``: print what the token endpoint gives the client, as identity
providers' tools do."""

import base64
import ssl
import sys
import urllib.request
from pathlib import Path


def main(url: str, authority: str, client: str, secret: str) -> None:
    credentials = base64.b64encode(f"{client}:{Path(secret).read_text()}".encode()).decode()
    request = urllib.request.Request(  # noqa: S310  the tests' own URL
        url, data=b"grant_type=client_credentials", headers={"Authorization": f"Basic {credentials}"}
    )
    trusting = ssl.create_default_context(cafile=authority)
    with urllib.request.urlopen(request, context=trusting) as reply:  # noqa: S310
        sys.stdout.write(reply.read().decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
