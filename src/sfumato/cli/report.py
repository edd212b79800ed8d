"""`sfumato report`: a stored release as a page for readers."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.failures import reason
from sfumato.cli.options import Force, Json, each_line
from sfumato.cli.output import output, print_json, stages
from sfumato.cli.outputs import write_new
from sfumato.cli.status import Refused
from sfumato.errors import InvalidParameter

EXAMPLES = each_line(
    "Examples:",
    "  sfumato report out",
    "  sfumato report out/release.json -o published.html",
    "",
    "The page stands on its own and asks the network for nothing. It needs the extra",
    'charts: pip install "sfumato[charts]"',
)
SCHEMA = 1


def report(
    release: Annotated[
        Path,
        typer.Argument(
            metavar="RELEASE",
            help="A folder that `sfumato release` wrote, or its release.json.",
            show_default=False,
        ),
    ],
    target: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to write the page.",
            show_default="report.html beside it",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the report of a stored release again; nothing is read or spent."""
    import sfumato.report
    from sfumato.publishing import Publication

    source = release / "release.json" if release.is_dir() else release
    content = _content(source)
    try:
        publication = Publication.read(content)
    except InvalidParameter as error:
        raise Refused(f"{source} is no release: {error}") from error
    receipt = _receipt(source.with_name("receipt.json"), content)
    where = source.with_name("report.html") if target is None else target
    with stages("drawing the report"):
        page = sfumato.report.html(publication, receipt)
    write_new(where, page.encode(), force=force)
    if as_json:
        print_json({"schema": SCHEMA, "version": sfumato.__version__, "report": str(where)})
        return
    output().print(f"The report is {where}", soft_wrap=True)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refused(f"no release can be read: {reason(error)}") from error


def _receipt(path: Path, release: bytes) -> dict[str, Any] | None:
    """The receipt beside a release, if there is one; one that does not belong to it is refused."""
    if not path.exists():
        return None
    try:
        receipt = json.loads(_content(path))
        named = receipt["release_sha256"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise Refused(f"{path} is no receipt of sfumato") from error
    if named != hashlib.sha256(release).hexdigest():
        raise Refused(f"{path} is the receipt of another release, or the release was changed")
    return receipt  # type: ignore[no-any-return]  # reason: a mapping, as it was read from above
