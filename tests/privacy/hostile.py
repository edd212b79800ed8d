"""Parameters that no caller should get away with."""

import math
from decimal import Decimal

NOT_POSITIVE = [0, -1, 0.0, -0.0, -1e-300, Decimal("-0.1")]
NOT_NUMBERS = [
    True,
    False,
    "1",
    None,
    [1],
    1j,
    math.nan,
    math.inf,
    -math.inf,
    Decimal("NaN"),
    Decimal("Infinity"),
]
HOSTILE = NOT_POSITIVE + NOT_NUMBERS
