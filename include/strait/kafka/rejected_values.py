"""The values of a cluster's properties that librdkafka rejects, found without a connection and without reading a file."""

import re
from collections.abc import Iterator, Mapping

from strait.config import oauth
from strait.config.client_properties import SECURITY
from strait.errors import ConfigError
from strait.kafka.clients import Watch, make_admin

_APART = oauth.OWN | {"bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.mechanisms"}
"""Properties with which librdkafka would connect and read certificates, and those of tokens that it does not know.
`strait.config.client_properties` checks them."""
_PROPERTY = re.compile(r'(?:configuration property|value for) "([^"]+)"', re.IGNORECASE)


def rejected_values(cluster: str, properties: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each property whose value librdkafka rejects. No reference to a file's content is followed."""
    left = {
        key: value
        for key, value in properties.items()
        if key not in _APART and "${" not in value and not (key == oauth.METHOD and value in oauth.METHODS)
    }
    while True:
        try:
            make_admin(left, Watch(cluster))
        except ConfigError as error:
            text = " ".join(error.problems[0].split())
        else:
            return
        found = _PROPERTY.search(text)
        if found is None or found[1] not in left:
            yield f"librdkafka rejects the properties: {text}"
            return
        key = found[1]
        yield f"`{key}`: librdkafka rejects the value{'' if key in SECURITY else f': {text}'}"  # it may be a secret
        del left[key]
