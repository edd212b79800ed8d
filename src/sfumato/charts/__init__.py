"""Pictures of released numbers and of errors: plain records in, Altair charts out."""

from sfumato.charts.files import save
from sfumato.charts.lines import error_curves, stacked
from sfumato.charts.numbers import bars_with_errors, ribbon, values_with_intervals

__all__ = ["bars_with_errors", "error_curves", "ribbon", "save", "stacked", "values_with_intervals"]
