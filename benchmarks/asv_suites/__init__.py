"""Suites of asv, which follow our own history."""
