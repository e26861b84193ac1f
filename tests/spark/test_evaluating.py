"""Which expressions Spark's present version lets transform records: those of the list, as it analyses them."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from strait.engine.detour.layout import TO_SPARK, Kind
from strait.errors import SetupError
from strait.launch.properties import own_properties
from strait.spark import evaluating as subject
from strait.spark import evaluation_settings as settings
from strait.spark.evaluating import Refused, Transformed
from strait.state.transform import AvroFormat, TopicTransform

pytestmark = [pytest.mark.spark, pytest.mark.core]

SCHEMA = (
    "id BIGINT, email STRING, amount DOUBLE, ok BOOLEAN, d DATE, t TIMESTAMP_NTZ, a ARRAY<STRING>, m MAP<STRING, STRING>, "
    "`of` STRUCT<x: INT>, c DECIMAL(38, 18), e DECIMAL(34, 2)"
)
ALLOWED = """
v.email <> 'x'
v.email = 'x' AND v.id > 5 OR NOT v.ok
v.id IN (1, 2) AND v.id BETWEEN 1 AND 5
v.email LIKE '%@example.com' OR v.email ILIKE 'a%' OR v.email RLIKE '^a+'
abs(hash(key)) % 100 < 10
pmod(xxhash64(key), 100) < 10
regexp_replace(v.email, '^([^@]+)', '$1x') = mask(v.email, 'X', 'x', 'n', NULL)
sha2(CAST(key AS STRING), 256) <> md5(value)
substring(v.email, 1, 3) = left(v.email, 3) OR split(v.email, '@')[1] = right(v.email, 2)
upper(trim(v.email)) <> lower(initcap(v.email)) -- a comment
coalesce(v.email, topic) = nvl(v.email, 'x') AND nullif(v.id, 1) IS NULL
CASE WHEN v.ok THEN v.amount / 2 > 1 ELSE partition = 0 END
year(v.d) > 2020 AND CAST(v.t AS DATE) < CAST(timestamp AS DATE) AND timestamp_micros(1000 * v.id) < timestamp
replace(concat_ws('-', v.a), 'a', 'b') <> array_join(v.a, ',') AND lpad(v.email, 30, ' ') > v.email
CAST(v.email AS TIMESTAMP_NTZ) > timestamp '2024-01-01 00:00:00' AND v.t < timestamp
-v.e < abs(v.e) AND round(v.e, -2) > 0 AND CAST(CAST(v.email AS DOUBLE) AS DECIMAL(10, 2)) = 1.5BD
substring_index(v.email, '@', -1) = 'x' AND get_json_object(v.email, '$.a[*].b') = 'x'
v.a[0] = 'x' OR array_contains(v.a, 'x') OR size(v.m) > 1 OR v.m['k'] = 'x'
exists(v.a, x -> x = 'a') AND filter(v.a, x -> x <> 'a') IS NOT NULL
get_json_object(CAST(value AS STRING), '$.a') = to_json(v)
v.`of`.x + 1 > offset
length(value) < 1000 AND base64(key) <> hex(key)
"""
REFUSED = """
rand() < 0.5 | Rand
uuid() = v.email | Uuid
current_timestamp() > timestamp | CurrentTimestamp
now() > timestamp | Now
current_date() > v.d | CurrentDate
current_user() = v.email | CurrentUser
unix_timestamp() > v.id | CurrentTimestamp
timestamp 'now' > timestamp | 'now'
CAST('today' AS DATE) > v.d | 'today'
CAST(concat('no', 'w') AS TIMESTAMP) > timestamp | constant text
monotonically_increasing_id() > 1 | MonotonicallyIncreasingID
spark_partition_id() = 0 | SparkPartitionID
input_file_name() = '' | InputFileName
version() = '' | SparkVersion
current_database() = '' | CurrentDatabase
shuffle(v.a)[0] = 'x' | Shuffle
aes_encrypt(v.email, '0123456789abcdef') = key | AesEncrypt
reflect('java.lang.Math', 'random') = '' | CallMethodViaReflection
raise_error('x') = 1 | RaiseError
assert_true(v.ok) IS NULL | AssertTrue
element_at(v.a, 0) = 'x' | ElementAt
decode(value, 'utf-8') = 'x' | Decode
unbase64(v.email) = key | UnBase64
map(v.email, 1)['x'] = 1 | CreateMap
regexp_replace(v.email, '(', '') = '' | not a regular expression
regexp_replace(v.email, 'a', '$1') = '' | names group 1
v.email RLIKE topic | must be a literal
v.email LIKE topic | must be a literal
v.email RLIKE '(a|b)+' | repeats (a|b)
v.email LIKE 'a/b' ESCAPE '/' | no ESCAPE
timestamp_millis(v.id) > timestamp | use timestamp_micros
timestamp_seconds(v.id) > timestamp | use timestamp_micros
date_trunc('YEAR', v.t) < timestamp | TruncTimestamp
add_months(v.d, v.id) > v.d | AddMonths
v.d < timestamp | no timestamp
CAST(v.email AS INTERVAL DAY) > INTERVAL '1' DAY | no interval
lpad(v.email, 2000000000, 'x') = '' | at most 10000
rpad(v.email, v.id, 'x') = '' | must be a literal
replace(v.email, 'a', v.email) = '' | must be a literal
concat_ws(v.email, v.a) = '' | must be a literal
array_join(v.a, v.email) = '' | must be a literal
CAST(v.email AS TIMESTAMP) > timestamp | TIMESTAMP_NTZ
v.email < timestamp | TIMESTAMP_NTZ
CAST(v.a AS ARRAY<TIMESTAMP>)[0] < timestamp | TIMESTAMP_NTZ
hour(v.email) = 1 | TIMESTAMP_NTZ
CAST(v.email AS DECIMAL(10, 2)) = 1 | AS DOUBLE
CAST(INTERVAL '100' DAY AS INTERVAL HOUR) > INTERVAL '1' HOUR | an interval
CAST(CAST(v.email AS VARIANT) AS INT) = 1 | VARIANT
-v.c > 0 | UnaryMinus of a DECIMAL with more than 34 digits
abs(v.c) > 0 | Abs of a DECIMAL with more than 34 digits
bround(v.c, -2) > 0 | BRound of a DECIMAL with more than 34 digits
substring_index(v.email, ',', CAST(v.id AS INT)) = 'x' | must be a literal
get_json_object(v.email, v.a[0]) = 'x' | must be a literal
get_json_object(v.email, '$.a[*][*]') = 'x' | one * at most
regexp_replace(v.email, '(.)+', '') = '' | repeats (.)
explode(v.a) = 'x' | UNSUPPORTED_GENERATOR
count(*) > 1 | only functions of one record
row_number() OVER (ORDER BY v.id) = 1 | only functions of one record
v.id IN (SELECT id FROM range(3)) | InSubquery
(SELECT max(id) FROM range(3)) = v.id | ScalarSubquery
__number = 1 | no column __number
nothing = 1 | nothing
v.nothing = 1 | nothing
v.id + | PARSE_SYNTAX_ERROR
v.id | must be boolean
"""


def nested(function: str, times: int) -> str:
    return f"{function}(" * times + "CAST(key AS STRING)" + ")" * times


def with_where(where: str) -> TopicTransform:
    return TopicTransform(json_schema=SCHEMA, where=where, secrets={"salt": "${directory:/a:b}"})


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    """Rows of transformed topics, of which there are none."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.local.dir", str(tmp_path_factory.mktemp("spark")))
    session = builder.config(map={name: own_properties("")[name] for name in settings.SETTINGS}).getOrCreate()
    yield subject.begun(session.createDataFrame([], TO_SPARK))
    session.stop()
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    gateway.shutdown()
    gateway.proc.stdin.close()  # which ends the JVM
    gateway.proc.wait(60)


def through(rows: DataFrame, transform: TopicTransform) -> DataFrame:
    return subject.through(rows, Transformed("t", transform))


@pytest.mark.parametrize("where", ALLOWED.strip().splitlines())
def test_functions_of_the_record_are_allowed(rows: DataFrame, where: str) -> None:
    assert through(rows, with_where(where)).columns == rows.columns


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_all_others_are_refused_by_name(rows: DataFrame, line: str) -> None:
    where, _, why = line.rpartition(" | ")
    with pytest.raises(Refused) as refused:
        through(rows, with_where(where))
    assert str(refused.value).startswith("where: ")
    assert why in str(refused.value)


@pytest.mark.parametrize(
    "level", ["CASE WHEN v.email = 'a' THEN 'b' ELSE {} END", "nvl(nullif(v.email, 'a'), {})", "if(v.id = 1, 'b', {})"]
)
def test_each_level_of_an_expression_takes_the_same_time_to_check(rows: DataFrame, level: str) -> None:
    """If each took twice that of the one before, forty would take years."""
    whole = "'c'"
    for _ in range(40):
        whole = level.format(whole)
    transform = TopicTransform(json_schema=SCHEMA, set_fields={"email": whole})
    assert through(rows, transform).columns == rows.columns


@pytest.mark.parametrize(
    "where",
    [
        "hour(timestamp) < 24 AND unix_micros(timestamp) < 9e18 AND CAST(timestamp AS STRING) > ''",
        "year(date_add(v.d, CAST(v.id AS INT))) <> 5 AND year(v.t) <> 5 AND hour(timestamp_micros(1000 * v.id)) < 24",
        "v.email RLIKE '^(a|b){0,100}[ab]+$' AND regexp_replace(v.email, '[ab]+', 'c') <> v.email",
        "CAST(v.email AS DATE) IS NULL AND CAST(v.email AS TIMESTAMP_NTZ) IS NULL AND CAST(v.id AS INT) <> 7",
        "-v.e < abs(v.e) AND round(v.e, -33) <> bround(v.e, 1) AND floor(v.c) <= ceil(v.c) AND v.c * v.c + v.e <> 1",
        "v.email RLIKE '^((a|b){0,9}c?){0,9}(a|b){0,99}' AND substring_index(v.email, 'a', -10000) <> v.email",
        "CAST(CAST(v.email AS DOUBLE) AS DECIMAL(10, 2)) = 1 AND get_json_object(v.email, '$.a[*].b') = 'x'",
        "weekofyear(v.d) < 60 AND datediff(v.d, date_sub(v.d, -2147483648)) <> 1 AND dayofyear(v.d) < 400",
    ],
)
def test_no_record_ends_the_evaluation(rows: DataFrame, where: str) -> None:
    schema = "id BIGINT, email STRING, d DATE, t TIMESTAMP_NTZ, c DECIMAL(38, 18), e DECIMAL(34, 2)"
    transform = TopicTransform(json_schema=schema, where=where)
    most = (1 << 63) - 1
    values = [
        json.dumps(
            {"id": number, "email": text, "d": day, "t": time, "c": "9" * 20 + "." + "9" * 18, "e": "-" + "9" * 32}
        )
        for number in (0, most, -most - 1)
        for text in ("a" * 10_000, "", "2026-01-01", "ab" * 10_000, '{"a":' + "[" * 900, "1e-400000000")
        for day, time in (
            ("5881580-07-11", "294247-01-10T04:00:54.775"),
            ("-5877641-06-23", "-290308-12-21T19:59:06.000"),
        )
    ]
    given = [
        (int(Kind.RECORD), transform.number("t"), 0, offset, ms, b"k", value.encode(), None, None)
        for ms in (0, 1_780_000_000_000_000_000, -most - 1, most)
        for offset, value in enumerate(values)
    ]
    found = through(subject.begun(rows.sparkSession.createDataFrame(given, TO_SPARK)), transform)
    assert found.select("__out_kind").count() == len(given)
    assert {row[0] for row in found.select("__out_kind").collect()} <= {Kind.RECORD, Kind.LEFT_OUT, Kind.MALFORMED}


def test_values_may_use_secrets(rows: DataFrame) -> None:
    hashed = "sha2(concat(secret.salt, CAST(key AS STRING)), 256)"
    transform = with_where("v.id > 0").model_copy(update={"key": hashed, "set_fields": {"email": hashed}})
    assert through(rows, transform).columns == rows.columns


@pytest.mark.parametrize(
    ("transform", "why"),
    [
        (TopicTransform(json_schema="id BIGINT,", where="true"), "format.schema: "),
        (
            TopicTransform(json_schema="t TIMESTAMP", where="true"),
            "format.schema: TIMESTAMP: a text may be a time of day",
        ),
        (TopicTransform(json_schema="a STRUCT<x: VARIANT>", where="true"), "format.schema: VARIANT: some values"),
        (TopicTransform(json_schema="i INTERVAL DAY", where="true"), "format.schema: INTERVAL DAY"),
        (TopicTransform(key="offset"), "key: its result is bigint, and must be string or binary"),
        (TopicTransform(value="struct(key)"), "value: its result is struct"),
        (TopicTransform(json_schema=SCHEMA, drop_fields=("x",)), "the schema has no field x"),
        (TopicTransform(json_schema="a INT", drop_fields=("a",)), "no field is left"),
        (TopicTransform(json_schema="a INT, b INT", rename_fields={"a": "b"}), "two fields become b"),
        (
            TopicTransform(json_schema="email STRING", set_fields={"Email": "'x'"}),
            "the schema has no field Email; did you mean 'email'?",
        ),
        (TopicTransform(json_schema=SCHEMA, set_fields={"emial": "'x'"}), "no field emial; did you mean 'email'?"),
        (
            TopicTransform(json_schema="email STRING, id INT", rename_fields={"id": "Email"}),
            "Email would be added beside the schema's email",
        ),
        (TopicTransform(json_schema="a INT", set_fields={"a": "rand()"}), "fields.set.a: Rand"),
        (TopicTransform(json_schema="__corrupt STRING", where="true"), "format.schema: "),
        (TopicTransform(key="||".join(["CAST(key AS STRING)"] * 150)), "key: it is nested 152 deep"),
        (TopicTransform(key=nested("upper", 2_000)), "key: "),
        (TopicTransform(where="NOT " * 4_000 + "true"), "where: "),
        (TopicTransform(where="v.id = 1"), "v"),
        (TopicTransform(where="secret.salt = 'x'"), "secret"),
        (with_where("length(to_json(struct(secret))) > 5"), "where: may not use `secret`: two hosts"),
        (with_where("v.id = length(secret . salt)"), "where: may not use `secret`: two hosts"),
    ],
)
def test_a_transformation_that_cannot_be_made_says_why(rows: DataFrame, transform: TopicTransform, why: str) -> None:
    with pytest.raises(Refused) as refused:
        through(rows, transform)
    assert why in str(refused.value)


AVRO = """{"type": "record", "name": "A", "fields": [
    {"name": "id", "type": "long"}, {"name": "small", "type": "int"}, {"name": "mail", "type": ["null", "string"]},
    {"name": "amount", "type": "double"}, {"name": "either", "type": ["int", "string"]}, {"name": "raw", "type": "bytes"},
    {"name": "level", "type": {"type": "enum", "name": "L", "symbols": ["LOW"]}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "at", "type": {"type": "record", "name": "P", "fields": [{"name": "city", "type": "string"}]}}]}"""


def with_avro(**settings: Any) -> TopicTransform:
    return TopicTransform(
        avro=AvroFormat(
            schema_text=AVRO,
            older={"3": AVRO.replace('{"name": "id"', '{"name": "gone", "type": "int"}, {"name": "id"')},
        ),
        **settings,
    )


@pytest.mark.parametrize(
    ("field", "expression"),
    [
        ("mail", "regexp_replace(v.mail, '^[^@]+', 'x')"),
        ("mail", "NULL"),
        ("id", "v.small + 1"),
        ("amount", "0"),
        ("amount", "v.amount * 1.5"),
        ("amount", "1.5"),
        ("level", "'LOW'"),
        ("raw", "CAST('' AS BINARY)"),
        ("tags", "filter(v.tags, x -> x <> 'a')"),
        ("tags", "CAST(array() AS ARRAY<STRING>)"),
        ("at", "named_struct('city', left(v.at.city, 1))"),
        ("gone", "0"),
    ],
)
def test_fields_in_avro_are_seen_and_set(rows: DataFrame, field: str, expression: str) -> None:
    made = through(rows, with_avro(set_fields={field: expression}, where="v.id > 0 AND v.mail <> topic"))
    assert made.columns == rows.columns


@pytest.mark.parametrize(
    ("field", "expression", "why"),
    [
        ("id", "CAST(v.id AS STRING)", "its result is string, and the schema's bigint"),
        ("small", "v.id", "its result is bigint, and the schema's int"),
        ("small", "1.5", "its result is decimal(2,1), and the schema's int"),
        ("id", "NULL", "is null, which the schema does not permit"),
        ("raw", "v.mail", "its result is string, and the schema's binary"),
        ("at", "named_struct('town', 'x')", "its result is struct<town:string>"),
        ("mail", "v.either", "either"),
        ("mail", "uuid()", "Uuid"),
        ("mail", "CAST(__fields AS STRING)", "no column __fields"),
    ],
)
def test_a_field_in_avro_keeps_its_type(rows: DataFrame, field: str, expression: str, why: str) -> None:
    with pytest.raises(Refused) as refused:
        through(rows, with_avro(set_fields={field: expression}))
    assert str(refused.value).startswith(f"fields.set.{field}: ") and why in str(refused.value)


def test_a_plan_does_not_leave_a_field_in_avro_unset_that_is_written_in_another_case(rows: DataFrame) -> None:
    """The configuration does not permit it, but plans of older versions may have it."""
    schema = '{"type": "record", "name": "A", "fields": [{"name": "mail", "type": "string", "default": ""}]}'
    avro = AvroFormat(schema_text=schema, schema_id=9, older={"7": schema.replace("mail", "Mail")})
    with pytest.raises(Refused, match=r"fields\.set\.mail: field Mail of `older\.7` may be the same one"):
        through(rows, TopicTransform(avro=avro, set_fields={"mail": "''"}))
    assert through(rows, TopicTransform(avro=avro, set_fields={"mail": "''", "Mail": "''"})).columns == rows.columns


@pytest.mark.parametrize("text", ["${env:HOME}", "${system:user.home}", "${spark:spark.app.name}", "${spark.app.name}"])
def test_text_in_an_expression_is_what_it_says(rows: DataFrame, text: str) -> None:
    """Spark would put secrets of the driver's environment there, for whoever may edit a link's topics."""
    plan = through(rows, TopicTransform(value=f"'<{text}>'"))._jdf.queryExecution().analyzed().toString()
    assert f"<{text}>" in plan


def test_properties_that_results_depend_on_must_be_straits(rows: DataFrame) -> None:
    topics, raw = [Transformed("t", with_where("v.id > 1"))], rows.sparkSession.createDataFrame([], TO_SPARK)
    assert subject.evaluated(raw, topics).columns == ["slot"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "own_properties", lambda _: dict.fromkeys(settings.SETTINGS, "other"))
        with pytest.raises(SetupError, match=r"spark\.buffer\.size is 256, and must be other"):
            subject.evaluated(raw, topics)
    ours = {name: own_properties("")[name] for name in settings.SETTINGS}
    for changed, problem in (
        ({"spark.sql.shuffle.partitions": "9", "spark.sql.warehouse.dir": "/x", "spark.executor.memory": "1g"}, ""),
        (
            {"spark.sql.legacy.sizeOfNull": "false"},
            r"spark\.sql\.legacy\.sizeOfNull is false, and must be left to Spark",
        ),
        ({"spark.sql.jsonGenerator.ignoreNullFields": "false"}, "must be left to Spark"),
        ({"spark.sql.ansi.enabled": "true"}, "ansi.enabled is true, and must be false"),
    ):
        with nullcontext() if not problem else pytest.raises(SetupError, match=problem):
            settings.require_settings(session_with(ours | changed))


def session_with(properties: dict[str, str]) -> Any:
    """What is asked for a session's properties."""
    conf = SimpleNamespace(getAll=lambda: list(properties.items()), get=properties.get)
    return SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: conf))


def test_secrets_have_one_order_however_a_rule_writes_them(rows: DataFrame) -> None:
    """Slots send contents by place, to a query that another plan of the same digest has made."""
    secrets = {"salt": "${directory:/a:b}", "label": "${directory:/a:c}"}
    one = TopicTransform(key="secret.salt", value="secret.label", secrets=secrets)
    other = TopicTransform(key="secret.salt", value="secret.label", secrets=dict(reversed(secrets.items())))
    assert (one.number("t"), [*one.secrets]) == (other.number("t"), [*other.secrets]) and [*one.secrets] == [
        "label",
        "salt",
    ]
    row = [(int(Kind.RECORD), one.number("t"), 0, 0, 0, b"k", b"v", ["the label", "the salt"], None)]
    (found,) = through(subject.begun(rows.sparkSession.createDataFrame(row, TO_SPARK)), other).collect()
    assert (bytes(found["__out_key"]), bytes(found["__out_value"])) == (b"the salt", b"the label")


def test_many_topics_go_through_one_plan(rows: DataFrame) -> None:
    made = rows
    for number in range(5):
        transform = TopicTransform(json_schema=f"a{number} INT", where=f"v.a{number} > 0", key="upper(topic)")
        made = subject.through(made, Transformed(f"topic {number}", transform))
    assert made.columns == rows.columns


def test_the_checks_of_a_topic_do_not_grow_with_the_topics_before_it(
    rows: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they did with the square of those topics' fields: with 300, the next topic took minutes."""
    small = Transformed("small", TopicTransform(json_schema="a INT", where="v.a > 0"))
    schema = ", ".join(f"field{number} STRING" for number in range(100))
    wide = Transformed("wide", TopicTransform(json_schema=schema, set_fields={"field1": "'x'"}))
    read: list[str] = []

    def loads(text: str) -> object:
        read.append(text)
        return json.loads(text)

    monkeypatch.setattr(subject, "json", SimpleNamespace(loads=loads))
    subject.through(rows, small)
    alone, behind = [*read], subject.through(rows, wide)
    read.clear()
    subject.through(behind, small)
    assert len(read) == len(alone) > 0
    assert sum(map(len, read)) < 1.1 * sum(map(len, alone))
