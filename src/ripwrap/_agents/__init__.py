"""Put ripwrap's MCP server and a guide to its tools into the configuration files of agents, and take them out again.

Install and then uninstall restores every byte: an edit is one insertion, and it carries a mark that says what was made.
"""
