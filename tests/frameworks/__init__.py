"""Tests with the agent frameworks and scripted models; each file is skipped if its framework is not installed."""
