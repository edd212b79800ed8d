"""Pictures of released numbers and of errors: plain records in, Altair charts out."""

from sfumato.charts.classes import class_sizes
from sfumato.charts.comparisons import comparison
from sfumato.charts.files import save, svg
from sfumato.charts.groups import bars_by_group, ribbons_by_group
from sfumato.charts.histograms import histogram
from sfumato.charts.lines import error_curves, stacked
from sfumato.charts.maps import heatmap
from sfumato.charts.numbers import bars_with_errors, ribbon, values_with_intervals
from sfumato.charts.strips import strips

__all__ = [
    "bars_by_group",
    "bars_with_errors",
    "class_sizes",
    "comparison",
    "error_curves",
    "heatmap",
    "histogram",
    "ribbon",
    "ribbons_by_group",
    "save",
    "stacked",
    "strips",
    "svg",
    "values_with_intervals",
]
