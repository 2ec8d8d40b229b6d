"""Logging set-up. The rule: nothing secret leaves through it."""
