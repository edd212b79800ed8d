"""Every error that sfumato raises on purpose; each depends on public facts only.

SfumatoError
├── InvalidParameter (ValueError)   a parameter breaks a rule
│   └── MissingBounds               bounds were not given; they are never read from data
├── SchemaMismatch (TypeError)      a column is not of the kind that was declared
├── BudgetExceeded                  the charge would pass a cap; nothing was read
├── RequestConflict                 a request id was used for something else
├── LedgerUnavailable               a ledger cannot be written or read now
├── LedgerDamaged                   a ledger is not what was written: changed, older, or no ledger
├── EngineFault                     an engine failed while it read a table
├── NotSupported                    a valid request that this mechanism cannot serve
└── MissingExtra (ImportError)      an optional package is needed
"""


class SfumatoError(Exception):
    """Base of every deliberate error; catching it catches all of them.

    Guarantee:
        Whether it is raised, and its message, follow from public facts: parameters, types and the number of
        rows where that is public. No message contains a value of the data.

    >>> import sfumato as sf
    >>> try:
    ...     sf.PureDP(-1)
    ... except sf.SfumatoError as error:
    ...     print(error)
    epsilon must be positive, got epsilon=-1
    """


class InvalidParameter(SfumatoError, ValueError):
    """A public parameter breaks a rule; the message names it, its value and the rule.

    Guarantee:
        Nothing was charged, and the message shows the parameter and no data.

    >>> import sfumato as sf
    >>> sf.mean([34.0, 45.0], bounds=(70, 18), epsilon=1)
    Traceback (most recent call last):
    sfumato.errors.InvalidParameter: lower must be below upper, got lower=70.0, upper=18.0
    """


class MissingBounds(InvalidParameter):
    """Bounds were not given, and reading them from the data would leak.

    Guarantee:
        Nothing was charged and no value was read; the message says what to give.

    >>> import sfumato as sf
    >>> sf.mean([34.0, 45.0], epsilon=1)
    Traceback (most recent call last):
    sfumato.errors.MissingBounds: bounds must be given, ...
    """


class SchemaMismatch(SfumatoError, TypeError):
    """The stored type of a column is not one that the query can use.

    Guarantee:
        Nothing was charged; the message shows the name and the type of the column, which are public, and
        no value.

    >>> import sfumato as sf
    >>> sf.mean(["thirty-four", "forty-five"], bounds=(18, 70), epsilon=1)
    Traceback (most recent call last):
    sfumato.errors.SchemaMismatch: ...
    """


class BudgetExceeded(SfumatoError):
    """The charge would pass the budget; the data were not read and nothing was spent.

    Guarantee:
        Decided from costs alone, before the data are read; the message shows the charge and what remains.

    >>> from sfumato.privacy import LaplaceEvent, PureAccountant, PureDP
    >>> PureAccountant(PureDP(1)).charge(LaplaceEvent(sensitivity=2, scale=1))
    Traceback (most recent call last):
    sfumato.errors.BudgetExceeded: a charge of epsilon 2.0 does not fit: epsilon 1.0 is left
    """


class RequestConflict(SfumatoError):
    """A request id was used before for another question, data set or analyst.

    Guarantee:
        Nothing was charged; the message shows the request id and nothing of the answer.

    >>> str(RequestConflict("request 'monday' was used before for another question: choose another id"))
    "request 'monday' was used before for another question: choose another id"
    """


class LedgerUnavailable(SfumatoError):
    """The ledger cannot be used now: no file, no server, no space, no permission, or locked for long.

    Guarantee:
        Nothing of the data is shown. Unless the message says otherwise nothing was charged.

    >>> import tempfile
    >>> import sfumato as sf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sf.SqlLedger(f"{folder}/missing/ledger.db")
    Traceback (most recent call last):
    sfumato.errors.LedgerUnavailable: ... cannot be opened: ...
    """


class LedgerDamaged(SfumatoError):
    """The ledger is not what was written: an entry changed, entries are missing, or it is no ledger.

    Guarantee:
        Nothing of the data is shown, and the message says what is wrong. Unless it says otherwise nothing was
        charged.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import sfumato as sf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "ledger.db").write_text("a letter, not a ledger; " * 100)
    ...     sf.SqlLedger(f"{folder}/ledger.db")
    Traceback (most recent call last):
    sfumato.errors.LedgerDamaged: ... is not a ledger: the file is no database
    """


class NotSupported(SfumatoError):
    """The request is valid but this mechanism or accountant has no proof for it.

    Guarantee:
        Nothing is released without a proof and nothing was charged for the refusal; the message names what
        was asked for and no data.

    >>> from sfumato.privacy import GaussianEvent, PureAccountant, PureDP
    >>> PureAccountant(PureDP(1)).charge(GaussianEvent(1, 4, coordinates=1))
    Traceback (most recent call last):
    sfumato.errors.NotSupported: a pure budget cannot pay for ...: it has no finite pure epsilon
    """


class EngineFault(SfumatoError):
    """An engine such as Spark or DuckDB failed while it read a table.

    Guarantee:
        The message names the engine and the kind of its error, and nothing that the error quoted. If the
        answer was charged for, it stays charged.

    >>> str(EngineFault("duckdb could not answer: IOException"))
    'duckdb could not answer: IOException'
    """


class MissingExtra(SfumatoError, ImportError):
    """An optional package is missing; the message names the extra to install.

    Guarantee:
        Depends on what is installed and on nothing else; nothing was charged.

    >>> str(MissingExtra('KeyedBits needs the package cryptography: pip install "sfumato[fast]"'))
    'KeyedBits needs the package cryptography: pip install "sfumato[fast]"'
    """
