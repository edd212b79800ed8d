"""Pictures of released numbers and of errors: plain records in, Altair charts out."""

from sfumato.charts.files import save, svg
from sfumato.charts.groups import bars_by_group, ribbons_by_group
from sfumato.charts.lines import error_curves, stacked
from sfumato.charts.numbers import bars_with_errors, ribbon, values_with_intervals

__all__ = [
    "bars_by_group",
    "bars_with_errors",
    "error_curves",
    "ribbon",
    "ribbons_by_group",
    "save",
    "stacked",
    "svg",
    "values_with_intervals",
]
