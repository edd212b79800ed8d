"""The JSON Schema of plans, for editors."""

from typing import Any

from sfumato.plan.model import Plan


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a plan file, with a description of every key.

    Guarantee:
        What `read` accepts meets the schema; rules between keys are told by `check` alone.

    >>> json_schema()["required"]
    ['version', 'title', 'data', 'budget', 'columns', 'queries']
    """
    found = Plan.model_json_schema(by_alias=True, mode="validation")
    found["description"] = "Statistics to release of one data set under one budget."
    for part in found["$defs"].values():
        part["description"] = part["description"].split("\n")[0]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A plan of sfumato, version 1",
        **{key: value for key, value in found.items() if key != "title"},
    }
