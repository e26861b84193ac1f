"""Kafka's requests and responses that kafka-python does not include. The JSON is Apache Kafka's, without its comments;
kafka-python makes a class of it."""

from typing import Any

from kafka.protocol.api_message import ApiMessage


def _message(name: str) -> Any:
    return type(ApiMessage)(name, (ApiMessage,), {}, load_json=__name__)


DescribeShareGroupOffsetsRequest = _message("DescribeShareGroupOffsetsRequest")
DescribeShareGroupOffsetsResponse = _message("DescribeShareGroupOffsetsResponse")
AlterShareGroupOffsetsRequest = _message("AlterShareGroupOffsetsRequest")
AlterShareGroupOffsetsResponse = _message("AlterShareGroupOffsetsResponse")
ShareGroupDescribeRequest = _message("ShareGroupDescribeRequest")
ShareGroupDescribeResponse = _message("ShareGroupDescribeResponse")
