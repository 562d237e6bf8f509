"""Ranked search, measured by queries whose answers are known."""
