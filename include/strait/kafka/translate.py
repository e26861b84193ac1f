"""Translation of librdkafka's errors into Strait's. The only place that knows librdkafka's error codes."""

from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException

from strait.errors import (
    ClusterError,
    ClusterUnavailable,
    ConfigError,
    LoginRejected,
    NotAuthorized,
    PlanConflict,
    StraitError,
    UnknownTopic,
)

_CREDENTIALS = {
    KafkaError._AUTHENTICATION,  # noqa: SLF001  librdkafka's names for errors that never left this process
    KafkaError._SSL,  # noqa: SLF001
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
    KafkaError.ILLEGAL_SASL_STATE,
}
_RIGHTS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_UNAVAILABLE = {
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001
    KafkaError._MSG_TIMED_OUT,  # noqa: SLF001
    KafkaError._WAIT_COORD,  # noqa: SLF001
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.CONCURRENT_TRANSACTIONS,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_CONTROLLER,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.UNKNOWN,  # a broker's internal error, as of a coordinator when control planes race for a transaction
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.LISTENER_NOT_FOUND,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError._NOENT,  # noqa: SLF001  "no leaders found"
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001  of an existing topic: its metadata has not arrived yet
    KafkaError._DESTROY_BROKER,  # noqa: SLF001  the queried broker has left the cluster meanwhile
}
_FENCED = {
    KafkaError._FENCED,  # noqa: SLF001
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.TRANSACTION_COORDINATOR_FENCED,
}
_POLICY_HINT = (
    "the brokers' create.topic.policy.class.name or alter.config.policy.class.name forbids it; if the request is too "
    "large, the topic has more than 10,000 partitions: create it with kafka-topics.sh and add partitions in steps"
)
_SETTING = {KafkaError._INVALID_ARG}  # noqa: SLF001


def is_credentials(error: KafkaError) -> bool:
    """Whether the cluster rejected the client's credentials; waiting longer cannot help."""
    return error.code() in _CREDENTIALS


def error_of(exception: KafkaException | KafkaError) -> KafkaError:
    """Return the KafkaError inside an exception of confluent-kafka."""
    if isinstance(exception, KafkaError):
        return exception
    inner = exception.args[0]
    return inner if isinstance(inner, KafkaError) else KafkaError(KafkaError._FAIL, str(inner))  # noqa: SLF001


def translate(
    exception: KafkaException | KafkaError, *, cluster: str, doing: str, seen: Iterable[KafkaError] = ()
) -> StraitError:
    """Return Strait's error for one of librdkafka's.

    Args:
        doing: the operation, as in "reading topic orders".
        seen: errors that librdkafka reported meanwhile outside of the call. A request that times out because the broker
            rejects the password only reports "timed out"; the cause is here.
    """
    error = error_of(exception)
    seen = list(seen)
    cause = next((other for other in seen if is_credentials(other)), None)
    if cause is None and error.code() in _UNAVAILABLE and seen:
        cause = seen[-1]
    return _ours(cause or error, cluster, doing)


def _ours(error: KafkaError, cluster: str, doing: str) -> StraitError:
    code = error.code()
    message = f"{doing}: {describe(error)}"
    if code in _SETTING:
        return ConfigError(f"clusters.{cluster}", [error.str()], hint="librdkafka's property names are expected")
    if code in _CREDENTIALS:
        return LoginRejected(
            cluster, message, hint=f"check clusters.{cluster}: security.protocol, sasl.* and ssl.* properties"
        )
    if code in _RIGHTS:
        return NotAuthorized(
            cluster, message, hint="grant this principal the ACL that this request needs on the resource"
        )
    if code in _FENCED:
        return PlanConflict(
            f"cluster {cluster}: {doing}: another control plane of this link took over",
            hint="no action is needed; the next cycle plans again",
        )
    if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return UnknownTopic(cluster, message)
    if code in _UNAVAILABLE or error.retriable():
        return ClusterUnavailable(
            cluster, message, hint=f"check that the brokers run and that clusters.{cluster} bootstrap.servers is right"
        )
    return ClusterError(cluster, message, hint=_POLICY_HINT if code == KafkaError.POLICY_VIOLATION else "")


def unreadable(error: KafkaError, cluster: str, topic: str, doing: str = "reading") -> NotAuthorized | None:
    """Return the error for a topic that the cluster does not let this principal read; None if ``error`` is another one.
    librdkafka retries it like a failure that passes, so each reader of topics must check for it.

    Args:
        doing: the operation, before the name of the topic.
    """
    if error.code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return None
    return NotAuthorized(cluster, f"{doing} {topic}: {describe(error)}", hint=f"grant READ on topic {topic}")


def describe(error: KafkaError) -> str:
    """Return an error in one line: its message, after its name if it is Kafka's own. librdkafka's message is used if
    the broker's is not a sentence but the whole request, as for one that the broker forwarded to the controller."""
    text = " ".join(error.str().split())
    if text.startswith("Request Request("):
        text = KafkaError(error.code()).str()
    return text if error.name().startswith("_") else f"{error.name()}: {text}"
