"""Benchmark of ranked search, with queries whose answers are known."""
