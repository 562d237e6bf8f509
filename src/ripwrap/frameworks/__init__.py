"""Adapters for agent frameworks: one module each, with an extra of the same name; nothing in ripwrap imports them."""
