"""Pages from templates: one environment for all reports, in which every text is escaped."""

from functools import cache
from typing import Any

from sfumato.errors import MissingExtra
from sfumato.report import words


def template(name: str) -> Any:
    """The compiled template of that name."""
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtra('a report needs the package jinja2: pip install "sfumato[charts]"') from error
    return _environment(jinja2).get_template(name)


@cache
def _environment(jinja2: Any) -> Any:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sfumato.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["name"] = lambda part: isinstance(part, words.Name)
    environment.filters |= {"plain": words.plain, "cut": words.cut}
    return environment
