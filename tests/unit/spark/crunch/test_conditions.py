"""Conditions as columns, of the types that their values have."""

from __future__ import annotations

from gossamer.spark.crunch.conditions import ConditionColumns


def test_columns_have_the_type_that_all_values_have() -> None:
    conditions = [
        (("nodes", 100), ("width", 1), ("kind", "random"), ("mixed", 1), ("on", True)),
        (("nodes", 200), ("width", 0.5), ("kind", "skewed"), ("mixed", "x"), ("on", False)),
    ]
    first = ConditionColumns(conditions).of(conditions[0])
    wanted = {"nodes": 100, "width": 1.0, "kind": "random", "mixed": "1", "on": True}
    assert first == {f"condition.{name}": value for name, value in wanted.items()}
    assert [*map(type, first.values())] == [*map(type, wanted.values())]


def test_what_a_condition_lacks_is_empty() -> None:
    columns = ConditionColumns([(("nodes", 100),), (("width", None),)])
    assert columns.of(()) == {"condition.nodes": None}
    assert columns.of((("nodes", 7),)) == {"condition.nodes": 7}
