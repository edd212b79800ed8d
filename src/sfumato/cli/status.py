"""Exit statuses, and the refusal of something that cannot be used."""

DONE = HELD = 0
VIOLATED = 1
UNUSABLE = 2
EXCEEDED = 3
LEDGER = 4
UNWRITTEN = 5
FAULT = 70  # as sysexits.h numbers a fault of the program itself
INTERRUPTED = 130  # as shells report a process that ended by Ctrl-C
PIPE_CLOSED = 141  # as shells report a process whose reader went away

# As the help says it; docs/cli.md says more.
SHORT = {
    DONE: "done; audits, verifications and figures: everything holds",
    VIOLATED: "a violation, damage, or a statement about a figure that fails",
    UNUSABLE: "arguments, a file or the plan cannot be used; nothing was charged",
    EXCEEDED: "the budget does not suffice; nothing was charged",
    LEDGER: "the ledger is missing, damaged or out of reach",
    UNWRITTEN: "paid for, but not all was drawn or written; the same command does it for free",
    FAULT: "a fault of sfumato itself",
    INTERRUPTED: "interrupted by Ctrl-C",
    PIPE_CLOSED: "the program that read the output stopped",
}


class Refused(Exception):
    """What the user named cannot be used; the message says why, for people."""

    def __init__(self, message: str, status: int = UNUSABLE) -> None:
        super().__init__(message)
        self.status = status
