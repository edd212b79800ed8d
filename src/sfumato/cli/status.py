"""Exit statuses, and the refusal of something that cannot be used."""

HELD = 0
VIOLATED = 1
UNUSABLE = 2
INTERRUPTED = 130  # as shells report a process that ended by Ctrl-C
PIPE_CLOSED = 141  # as shells report a process whose reader went away


class Refused(Exception):
    """What the user named cannot be used; the message says why, for people."""
