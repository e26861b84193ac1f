"""Kafka's error codes by the names that the protocol gives them, with the numbers of kafka-python's classes."""

from kafka import errors

UNKNOWN_SERVER_ERROR: int = errors.UnknownError.errno
OFFSET_OUT_OF_RANGE: int = errors.OffsetOutOfRangeError.errno
CORRUPT_MESSAGE: int = errors.CorruptRecordError.errno
UNKNOWN_TOPIC_OR_PARTITION: int = errors.UnknownTopicOrPartitionError.errno
LEADER_NOT_AVAILABLE: int = errors.LeaderNotAvailableError.errno
NOT_LEADER_OR_FOLLOWER: int = errors.NotLeaderForPartitionError.errno
REQUEST_TIMED_OUT: int = errors.RequestTimedOutError.errno
COORDINATOR_LOAD_IN_PROGRESS: int = errors.CoordinatorLoadInProgressError.errno
COORDINATOR_NOT_AVAILABLE: int = errors.CoordinatorNotAvailableError.errno
NOT_COORDINATOR: int = errors.NotCoordinatorError.errno
UNKNOWN_MEMBER_ID: int = errors.UnknownMemberIdError.errno
REPLICA_NOT_AVAILABLE: int = errors.ReplicaNotAvailableError.errno
MESSAGE_TOO_LARGE: int = errors.MessageSizeTooLargeError.errno
RECORD_LIST_TOO_LARGE: int = errors.RecordListTooLargeError.errno
NOT_ENOUGH_REPLICAS: int = errors.NotEnoughReplicasError.errno
NOT_ENOUGH_REPLICAS_AFTER_APPEND: int = errors.NotEnoughReplicasAfterAppendError.errno
TOPIC_AUTHORIZATION_FAILED: int = errors.TopicAuthorizationFailedError.errno
CLUSTER_AUTHORIZATION_FAILED: int = errors.ClusterAuthorizationFailedError.errno
INVALID_TIMESTAMP: int = errors.InvalidTimestampError.errno
OUT_OF_ORDER_SEQUENCE_NUMBER: int = errors.OutOfOrderSequenceNumberError.errno
DUPLICATE_SEQUENCE_NUMBER: int = errors.DuplicateSequenceNumberError.errno
TRANSACTIONAL_ID_AUTHORIZATION_FAILED: int = errors.TransactionalIdAuthorizationFailedError.errno
KAFKA_STORAGE_ERROR: int = errors.KafkaStorageError.errno
UNKNOWN_PRODUCER_ID: int = errors.UnknownProducerIdError.errno
FETCH_SESSION_ID_NOT_FOUND: int = errors.FetchSessionIdNotFoundError.errno
INVALID_FETCH_SESSION_EPOCH: int = errors.InvalidFetchSessionEpochError.errno
FENCED_LEADER_EPOCH: int = errors.FencedLeaderEpochError.errno
UNKNOWN_LEADER_EPOCH: int = errors.UnknownLeaderEpochError.errno
OFFSET_NOT_AVAILABLE: int = errors.OffsetNotAvailableError.errno
INVALID_RECORD: int = errors.InvalidRecordError.errno
UNKNOWN_TOPIC_ID: int = errors.UnknownTopicIdError.errno
INCONSISTENT_TOPIC_ID: int = errors.InconsistentTopicIdError.errno
FETCH_SESSION_TOPIC_ID_ERROR: int = errors.FetchSessionTopicIdError.errno
