"""The TLS settings of a worker: TLS 1.2 or newer, and client certificates if a CA for them is configured."""

import ssl

from omnigraph.errors import ConfigError
from omnigraph.server.settings import TlsFiles


def make_tls_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the TLS context of a server; raise `ConfigError` if a file cannot be used."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.certificate, files.key)
        if files.client_ca is not None:
            context.load_verify_locations(files.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(reason=f"cannot use the TLS files: {getattr(error, 'strerror', None) or error}") from None
    return context
