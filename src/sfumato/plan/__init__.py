"""Plans: files that say which statistics of which data are released under one budget."""

from sfumato.plan.checking import check
from sfumato.plan.model import Plan
from sfumato.plan.preview import PlanPreview, QueryPreview, preview
from sfumato.plan.problems import PlanError
from sfumato.plan.queries import fields
from sfumato.plan.questions import questions
from sfumato.plan.reading import parse, read
from sfumato.plan.schema import json_schema
from sfumato.plan.starter import starter

__all__ = [
    "Plan",
    "PlanError",
    "PlanPreview",
    "QueryPreview",
    "check",
    "fields",
    "json_schema",
    "parse",
    "preview",
    "questions",
    "read",
    "starter",
]
