"""Conformance suites of frameworks that need packages of their own; `nox -s conformance` runs them."""
