"""Benchmark of the tools for agents: relevant lines within a budget of tokens, and tokens of their answers."""
