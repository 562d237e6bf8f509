"""The agent frameworks themselves, with models of their own that replay; each is left out if it is not installed."""
