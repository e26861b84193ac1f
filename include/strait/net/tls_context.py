"""TLS contexts from librdkafka's properties. Files are read at each connect, so a rotated certificate is used from the
next connection on."""

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from strait.errors import ConfigError


def broker_context(where: str, properties: Mapping[str, str]) -> ssl.SSLContext:
    """Return a context for connections to brokers. Raises ConfigError, which starts with ``where``, if a certificate or
    key cannot be used."""
    get = properties.get
    try:
        context = _trusting(get("ssl.ca.location"), get("ssl.ca.pem"))
        _identify(context, properties)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(where, [f"certificate or key not usable: {_why(error)}"]) from error
    if get("ssl.endpoint.identification.algorithm", "https").lower() in ("none", ""):
        context.check_hostname = False
    if get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def endpoint_context(where: str, properties: Mapping[str, str]) -> ssl.SSLContext:
    """Return a context for HTTPS to a token endpoint. Raises ConfigError as `broker_context` does."""
    try:
        return _trusting(properties.get("https.ca.location"), properties.get("https.ca.pem"))
    except (OSError, ValueError) as error:
        raise ConfigError(where, [f"`https.ca.*` cannot be used: {_why(error)}"]) from error


def _trusting(location: str | None, pem: str | None) -> ssl.SSLContext:
    """Return a context that trusts only the given authorities; the system's if none is given, or for librdkafka's
    ``probe``."""
    if location == "probe":
        location = None
    if location and Path(location).is_dir():
        return ssl.create_default_context(capath=location, cadata=pem or None)
    return ssl.create_default_context(cafile=location or None, cadata=pem or None)


def _identify(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    """Load the client's certificate for mutual TLS, if there is one."""
    get = properties.get

    def passphrase() -> str:
        return get("ssl.key.password", "")  # always given: otherwise OpenSSL would prompt at the terminal and block

    with ExitStack() as held:

        def file(name: str) -> str | None:
            pem = get(f"ssl.{name}.pem")
            return held.enter_context(_in_memory(pem.encode())) if pem else get(f"ssl.{name}.location")

        if get("ssl.keystore.location"):
            pems = _open_keystore(Path(get("ssl.keystore.location", "")), get("ssl.keystore.password", ""))
            context.load_cert_chain(*(held.enter_context(_in_memory(pem)) for pem in pems))
            return
        certificate = file("certificate")
        if certificate:
            context.load_cert_chain(certificate, file("key"), passphrase)  # without a key file it holds both


def _open_keystore(path: Path, password: str) -> tuple[bytes, bytes]:
    """Convert a PKCS#12 file to PEM: the certificate with the chain to its authority, and the key."""
    # Imported here, since it takes 9 MB in every slot, and few slots use such a file.
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    key, certificate, others = pkcs12.load_key_and_certificates(path.read_bytes(), password.encode())
    if key is None or certificate is None:
        raise ValueError(f"{path} holds no key with a certificate")
    chain = b"".join(each.public_bytes(Encoding.PEM) for each in (certificate, *others))
    return chain, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """Yield a path from which OpenSSL, which accepts only files, can read content that must never be on a disk."""
    descriptor = os.memfd_create("strait", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _why(error: OSError | ValueError) -> str:
    named = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
    return f"{named}{getattr(error, 'strerror', None) or error}"
