"""Evaluates the expressions of transformed topics in the tasks of the slots.

    slot -> rows of Arrow -> projections and a filter in the JVM -> rows of Arrow -> batches -> slot

Nothing between the two ends moves a row to another task, or out of order. All topics share one query; each row has the
number of its topic's transformation, and only these expressions are evaluated for it.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    FractionalType,
    IntegerType,
    LongType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructType,
)

from strait.avro.schema import parsed
from strait.avro.values import set_problems
from strait.config.route_names import topic_of
from strait.config.transform import WHY_NOT_IN_WHERE
from strait.config.validation import did_you_mean
from strait.engine.detour.avro import values_of
from strait.engine.detour.collector import collect
from strait.engine.detour.layout import FROM_SPARK, Kind
from strait.spark.evaluation_settings import require_settings
from strait.spark.expressions import (
    MOST_DEPTH,
    ROUNDING,
    depth,
    refusals,
    regexes,
    replacement_problem,
    schema_problem,
    tree,
)
from strait.state.schema import Plan
from strait.state.transform import TopicTransform

log = logging.getLogger(__name__)
for _name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)  # otherwise each refusal is hundreds of lines of JSON, too

_CORRUPT = "__corrupt"
_MOST_MS = 253_402_300_799_999
"""The end of the year 9999. `timestamp_millis` ends the task for a time in nanoseconds, which brokers may accept."""
_MOST_DETAIL = 500
_INTEGERS = (ByteType, ShortType, IntegerType, LongType)  # each holds all values of those before it


class Transformed(NamedTuple):
    """One transformed topic."""

    topic: str
    transform: TopicTransform

    @property
    def number(self) -> int:
        return self.transform.number(self.topic)


class Refused(Exception):
    """An expression cannot be used; the text names it and the reason, for operators."""


def transformed_topics(plan: Plan) -> tuple[Transformed, ...]:
    """Return the transformed topics of a plan."""
    each = ((topic.source, topic.policy.transform) for topic in plan.topics)
    return tuple(Transformed(topic, transform) for topic, transform in each if transform is not None)


def evaluated(rows: DataFrame, topics: Iterable[Transformed]) -> DataFrame:
    """Return the query that evaluates the rows and sends the results to the slots. It ends when the slots do, and has no
    rows.

    Args:
        rows: of the columns `strait.engine.detour.layout.TO_SPARK`.

    Raises:
        SetupError: the link's `spark.conf` changes a property that results depend on.
    """
    require_settings(rows.sparkSession)
    refused: dict[int, str] = {}
    made = begun(rows)
    for topic in topics:
        try:
            made = through(made, topic)
        except Refused as error:
            log.warning("topic %s is not transformed: %s", topic.topic, error)
            refused[topic.number] = str(error)

    def sent(batches: Iterator[Any]) -> Iterator[Any]:
        return collect(refused, batches)

    # There is no filter: Spark would move its condition, with all expressions in it, below the projections, and parse again.
    return made.select(*FROM_SPARK).mapInArrow(sent, "slot INT")


def begun(rows: DataFrame) -> DataFrame:
    """Return the rows with columns for the results, as if no topic was transformed. Keys and values that do not change are
    null there: they stay with the slot."""
    unknown = f"CASE WHEN __kind = {Kind.RECORD.value} THEN {Kind.UNKNOWN.value} ELSE __kind END"
    return rows.select(
        "*",
        F.expr(f"CASE WHEN __ms BETWEEN -{_MOST_MS} AND {_MOST_MS} THEN timestamp_millis(__ms) END").alias("timestamp"),
        F.expr(unknown).alias("__out_kind"),
        F.lit(None).cast("binary").alias("__out_key"),
        F.expr(f"CASE WHEN __kind = {Kind.ADDRESS.value} THEN value END").alias("__out_value"),
        F.lit(None).cast("binary").alias("__out_fields"),
    )


def through(rows: DataFrame, one: Transformed) -> DataFrame:
    """Return the rows with those of one topic transformed. Raises `Refused`."""
    transform, columns = one.transform, rows.columns
    mine = f"(__kind = {Kind.RECORD.value} AND __number = {one.number})"
    seen = rows.withColumn("topic", F.lit(topic_of(one.topic)))
    if transform.secrets:
        fields = ", ".join(f"'{name}', __secrets[{at}]" for at, name in enumerate(transform.secrets))
        seen = seen.withColumn("secret", F.expr(f"named_struct({fields})"))
    malformed = "false"
    if transform.json_schema or transform.avro is not None:
        unparsed = seen
        seen = _resolved("format.schema", lambda: unparsed.withColumn("v", F.when(F.expr(mine), _parsed(transform))))
        if transform.json_schema and (problem := schema_problem(json.loads(seen.schema["v"].dataType.json()))):
            raise Refused(f"format.schema: {problem}")
        # Rows whose value is not one object do not arrive as records: `strait.wire.json_values`.
        malformed = f"(value IS NOT NULL AND (v IS NULL OR v.{_CORRUPT} IS NOT NULL))"
    looked_at = seen
    seen = _resolved("format.schema", lambda: looked_at.withColumn("__malformed", F.expr(f"{mine} AND {malformed}")))
    where = " AND ".join(_conditions(seen, transform)) or "true"
    kept = Kind.RECORD.value
    kind = f"CASE WHEN __malformed THEN {Kind.MALFORMED.value} WHEN {where} THEN {kept} ELSE {Kind.LEFT_OUT.value} END"
    made = {"__out_kind": "__made_kind"}
    if transform.key:
        made["__out_key"] = f"CAST({_checked(seen, transform, 'key', transform.key, StringType, BinaryType)} AS BINARY)"
    if transform.avro is not None and transform.set_fields:
        made["__out_fields"] = f"CAST({_avro_fields(seen, transform)} AS BINARY)"
    elif not transform.keeps_value:
        made["__out_value"] = f"CAST({_value(seen, transform)} AS BINARY)"
    for name in made.keys() - {"__out_kind"}:  # a record that cannot be parsed cannot be masked either
        made[name] = f"CASE WHEN __made_kind = {kept} THEN {made[name]} END"

    def chosen(name: str) -> Column:
        if name not in made:
            return F.col(name)
        return F.expr(f"CASE WHEN {mine} THEN ({made[name]}) ELSE {name} END").alias(name)

    judged = seen.withColumn("__made_kind", F.expr(f"CASE WHEN {mine} THEN {kind} END"))
    return _resolved("the transformation", lambda: judged.select(*map(chosen, columns)))


def _conditions(rows: DataFrame, transform: TopicTransform) -> Iterator[str]:
    """Yield the conditions that are all true for a record that is copied. Raises `Refused`."""

    def checked(name: str, condition: str) -> str:
        # Also without parentheses it is one expression: `true) OR (false` would send a record to several routes.
        _resolved(name, lambda: rows.select(F.expr(condition)))
        return _checked(rows, transform, name, condition, BooleanType, excluded={"secret": WHY_NOT_IN_WHERE})

    if transform.where:
        yield checked("where", transform.where)
    if transform.when:
        yield checked("route.when", transform.when)
    for condition in transform.unless:  # a null is not true, so a later route gets the record
        yield f"NOT coalesce({checked('route.when of an earlier route', condition)}, false)"


def _parsed(transform: TopicTransform) -> Column:
    source, schema = "value", transform.json_schema
    if transform.avro is not None:
        columns = parsed(transform.avro.schema_text).columns
        source, schema = "__fields", ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    both = ", ".join(filter(None, (schema, f"{_CORRUPT} STRING")))
    return F.from_json(F.col(source).cast("string"), both, options)


def _value(rows: DataFrame, transform: TopicTransform) -> str:
    """Return the expression of the new value. Raises `Refused`."""
    if not transform.changes_fields:
        return _checked(rows, transform, "value", transform.value, StringType, BinaryType)
    fields = _fields(rows)
    # Also of `set`: with a typo in its name, the field that is meant would be copied as it is.
    for name in (*transform.set_fields, *transform.drop_fields, *transform.rename_fields):
        if name not in fields:
            raise Refused(f"fields: the schema has no field {name}{did_you_mean(name, fields)}")
    made: dict[str, str] = {}
    for name in fields:
        if name in transform.drop_fields:
            continue
        new = transform.rename_fields.get(name, name)
        if new in made:
            raise Refused(f"fields: two fields become {new}")
        given = transform.set_fields.get(name)
        if given is not None:
            made[new] = _checked(rows, transform, f"fields.set.{name}", given, DataType)
        else:
            made[new] = "v.`{}`".format(name.replace("`", "``"))
    if not made:
        raise Refused("fields: no field is left")
    kept = {name.lower(): name for name in fields if name in made and name not in transform.set_fields}
    if added := next((name for name in made if name not in fields and name.lower() in kept), None):
        raise Refused(
            f"fields: {added} would be added beside the schema's {kept[added.lower()]}, which it does not change"
        )
    struct = ", ".join(f"{_text(name)}, {content}" for name, content in made.items())
    return f"CASE WHEN value IS NOT NULL THEN to_json(named_struct({struct})) END"


def _text(name: str) -> str:
    """Return the name as a literal."""
    return "'{}'".format(name.replace("\\", "\\\\").replace("'", "\\'"))


def _avro_fields(rows: DataFrame, transform: TopicTransform) -> str:
    """Return the expression of the fields to set, as one JSON object, each of its type in the schema. Raises `Refused`."""
    assert transform.avro is not None
    values = values_of(transform.avro)
    for problem in set_problems(values, transform.set_fields):  # a plan of an older version may have it
        raise Refused(problem)
    made = []
    for name, expression in transform.set_fields.items():
        wanted = values.types_of(name)[0]
        given = _checked(rows, transform, f"fields.set.{name}", expression, DataType)
        kind = rows.select(F.expr(given).alias("it")).schema["it"].dataType
        if isinstance(kind, NullType) and not wanted.nullable:
            raise Refused(f"fields.set.{name}: is null, which the schema does not permit")
        target = StructType.fromDDL(f"it {wanted.spark}")["it"].dataType
        if not _fits(kind, target):
            raise Refused(
                f"fields.set.{name}: its result is {kind.simpleString()}, and the schema's {target.simpleString()}"
            )
        made.append(f"'{name}', CAST({given} AS {wanted.spark})")
    return f"CASE WHEN value IS NOT NULL THEN to_json(named_struct({', '.join(made)})) END"


def _fits(kind: DataType, target: DataType) -> bool:
    """Return whether a cast keeps all values: null, the same type, a wider integer; and numbers as floating-point ones."""
    if isinstance(kind, NullType) or kind.simpleString() == target.simpleString():
        return True
    if isinstance(target, FractionalType):
        return isinstance(kind, NumericType)
    order = [type(each) for each in (kind, target)]
    return all(each in _INTEGERS for each in order) and sorted(order, key=_INTEGERS.index) == order


def _fields(rows: DataFrame) -> list[str]:
    parsed = rows.schema["v"].dataType
    assert isinstance(parsed, StructType)
    return [field.name for field in parsed.fields if field.name != _CORRUPT]


def _nodes(expression: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of a resolved expression as `tree` takes them, with the fields that it needs.

    Spark's `toJSON` of the whole has the branches of a CASE twice, as fields and as children, so that each further level of
    nested ones takes twice the time.
    """
    rest = [expression]
    while rest:
        node = rest.pop()
        name, children = node.getClass().getName(), node.children()
        found = {"class": name, "num-children": children.size()}
        kind = name.rpartition(".")[2]
        if kind in ("AttributeReference", "Literal"):
            (found,) = json.loads(node.toJSON())
        elif kind == "Cast":
            found["dataType"], found["from"] = (json.loads(it.dataType().json()) for it in (node, children.apply(0)))
        elif kind in ROUNDING:
            found["of"] = json.loads(children.apply(0).dataType().json())
        elif kind in ("Like", "ILike"):
            found["escape"] = str(node.escapeChar())
        yield found
        rest += [children.apply(at) for at in reversed(range(found["num-children"]))]


def _checked(
    rows: DataFrame,
    transform: TopicTransform,
    name: str,
    expression: str,
    *kinds: type[DataType],
    excluded: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the expression in parentheses. Raises `Refused` if it is invalid, has another type, or is not a function of
    the record that never fails.

    Args:
        excluded: column that it may not use -> the reason.
    """
    excluded = dict.fromkeys({"key", "value"} - transform.reads, "its name is not in the text of an expression") | dict(
        excluded
    )
    one = _resolved(name, lambda: rows.select(F.expr(f"({expression}\n)").alias("it")))
    kind = one.schema["it"].dataType
    if not isinstance(kind, kinds):
        wanted = " or ".join(each().simpleString() for each in kinds)
        raise Refused(f"{name}: its result is {kind.simpleString()}, and must be {wanted}")
    plan = _analyzed(one)
    if plan.nodeName() != "Project" or not plan.child().fastEquals(_analyzed(rows)):
        raise Refused(
            f"{name}: only functions of one record can be evaluated, without aggregates, windows or subqueries"
        )
    nodes = list(_nodes(plan.projectList().head()))
    if (found := depth(nodes)) > MOST_DEPTH:
        raise Refused(f"{name}: it is nested {found} deep, and at most {MOST_DEPTH} is allowed")
    root = tree(nodes)
    used = (str(node.fields.get("name")) for node in root.walk() if node.kind == "AttributeReference")
    if column := next((column for column in used if column in excluded), None):
        raise Refused(f"{name}: {excluded[column]}")
    if problems := refusals(expression, root):
        raise Refused(f"{name}: {'; '.join(problems)}")
    for problem in _regex_problems(rows.sparkSession, regexes(root)):
        raise Refused(f"{name}: {problem}")
    return f"({expression}\n)"  # it may end with a comment


def _resolved(name: str, made: Callable[[], DataFrame]) -> DataFrame:
    """Return the rows once Spark has resolved them. Raises `Refused`; ``name``: of the key in the rule."""
    try:
        rows = made()
        _ = rows.schema
    except PySparkException as error:
        raise Refused(f"{name}: {_first_line(error)}") from None
    except Py4JJavaError as error:  # an error of the JVM, such as too deep a recursion
        raise Refused(f"{name}: {_first_line(error.java_exception.toString())}") from None
    return rows


def _analyzed(rows: DataFrame) -> Any:
    """Return Spark's analyzed plan, an object of the JVM."""
    return rows._jdf.queryExecution().analyzed()  # noqa: SLF001


def _regex_problems(session: SparkSession, found: Iterable[Any]) -> Iterator[str]:
    java = session._jvm.java.util.regex.Pattern  # noqa: SLF001
    for regex in found:
        try:
            groups = java.compile(regex.pattern).matcher("").groupCount()
        except PySparkException as error:
            yield f"{regex.pattern!r} is not a regular expression: {_first_line(error)}"
            continue
        if regex.replacement is not None and (problem := replacement_problem(regex.replacement, groups)):
            yield problem


def _first_line(error: object) -> str:
    """Return the cause, without proposals that name columns which expressions may not use."""
    return (str(error).strip().splitlines() or [""])[0].partition(" Did you mean")[0][:_MOST_DETAIL]
