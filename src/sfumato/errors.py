"""Every error that sfumato raises on purpose; each depends on public facts only.

SfumatoError
├── InvalidParameter (ValueError)   a parameter breaks a rule
│   └── MissingBounds               bounds were not given; they are never read from data
├── SchemaMismatch (TypeError)      a column is not of the kind that was declared
├── BudgetExceeded                  the charge would pass a cap; nothing was read
├── NotSupported                    a valid request that this mechanism cannot serve
└── MissingExtra (ImportError)      an optional package is needed
"""


class SfumatoError(Exception):
    """Base of every deliberate error."""


class InvalidParameter(SfumatoError, ValueError):
    """A public parameter breaks a rule; the message names it, its value and the rule."""


class MissingBounds(InvalidParameter):
    """Bounds were not given, and reading them from the data would leak."""


class SchemaMismatch(SfumatoError, TypeError):
    """The stored type of a column is not one that the query can use."""


class BudgetExceeded(SfumatoError):
    """The charge would pass the budget; the data were not read and nothing was spent."""


class NotSupported(SfumatoError):
    """The request is valid but this mechanism or accountant has no proof for it."""


class MissingExtra(SfumatoError, ImportError):
    """An optional package is missing; the message names the extra to install."""
