"""A publication as one page for its readers and its reviewers; it needs no network and runs no script."""

from sfumato.report.page import html, prepare

__all__ = ["html", "prepare"]
