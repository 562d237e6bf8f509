"""Put ripwrap's MCP server and a guide to its tools into the configuration files of agents, and take them out again.

`json_text` edits a text; `plan` knows the files of each client, and reads and writes them.
Install and then uninstall restores every byte: an edit is one insertion, and it carries a mark that says what was made.
"""
