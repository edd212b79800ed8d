"""Designs as JSON, so that an analyst can send one to respondents and both mean the same."""

import re
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from sfumato.checks import shown
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.local.binary import ForcedResponse, TwoSamples, UnrelatedQuestion, Warner
from sfumato.local.design import FORMAT, Channel
from sfumato.local.encodings import DirectEncoding, UnaryEncoding
from sfumato.local.permanent import PermanentUnary
from sfumato.local.ranges import OneBitMean, Ranges

_RATIO = re.compile(r"-?[0-9]{1,700}(/[0-9]{1,700})?")

_KINDS: dict[str, Any] = {
    kind.TYPE: kind
    for kind in (
        Warner,
        ForcedResponse,
        UnrelatedQuestion,
        TwoSamples,
        DirectEncoding,
        UnaryEncoding,
        PermanentUnary,
        Ranges,
        OneBitMean,
    )
}


def design_from_dict(record: Mapping[str, Any]) -> Any:
    """Reads back what `to_dict` of a design wrote, exactly.

    Guarantee:
        The result equals the design that was written; anything else is refused.

    Raises:
        InvalidParameter: another format, type, set of fields, or a number that is not exact text.

    >>> from sfumato.local import Warner
    >>> Warner(keep=0.75).to_dict()
    {'format': 1, 'type': 'warner', 'keep': '3/4'}
    >>> design_from_dict(Warner.of_epsilon(1).to_dict()) == Warner.of_epsilon(1)
    True
    """
    if not isinstance(record, Mapping):
        raise InvalidParameter(f"a design must be a mapping, got {type(record).__name__}")
    check_format(record, "a design")
    tag = record.get("type")
    if not isinstance(tag, str) or tag not in _KINDS:
        raise InvalidParameter(f"type must be one of {', '.join(_KINDS)}, got type={shown(tag)}")
    names = [field.name for field in fields(_KINDS[tag])]
    if set(record) != {"format", "type", *names}:
        raise InvalidParameter(f"a design of type {tag} must have exactly the fields {', '.join(names)}")
    return _KINDS[tag](**{name: _read(name, record[name]) for name in names})


def check_design(design: object) -> None:
    """Refuse what is no design."""
    if type(design) not in _KINDS.values():
        raise InvalidParameter(f"design must be one of sfumato.local, got {type(design).__name__}")


def check_channel(design: object) -> Channel:
    """A design that one respondent's answer follows; two samples have two of them."""
    check_design(design)
    if not isinstance(design, Channel):
        rule = "a respondent is in one sample: take design.sample(0, rate=...) or design.sample(1, rate=...)"
        raise NotSupported(rule)
    return design


def check_format(record: Mapping[str, Any], what: str) -> None:
    """Refuse a record of another format; True is no number of one."""
    if type(record.get("format")) is not int or record["format"] != FORMAT:
        raise InvalidParameter(f"format of {what} must be {FORMAT}, got format={shown(record.get('format'))}")


def _read(name: str, value: Any) -> Any:
    if name in ("categories", "trait", "dither"):
        return value  # the design itself checks these
    if name == "encoding":
        # Only these two, so that a record can not nest without end.
        if not isinstance(value, Mapping) or value.get("type") not in ("direct", "unary"):
            raise InvalidParameter("encoding must be a design of type direct or unary")
        return design_from_dict(value)
    return tuple(_number(name, item) for item in value) if isinstance(value, list) else _number(name, value)


def _number(name: str, text: object) -> Fraction:
    if not isinstance(text, str) or not _RATIO.fullmatch(text):
        raise InvalidParameter(f'{name} must be exact text such as "3/4", got {name}={shown(text)}')
    top, _, bottom = text.partition("/")
    if bottom and int(bottom) == 0:
        raise InvalidParameter(f"{name} must have a denominator above zero, got {name}={shown(text)}")
    return Fraction(int(top), int(bottom or "1"))
