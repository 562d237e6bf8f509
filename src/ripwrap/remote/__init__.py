"""Run rg on another machine over ssh, or in a container: hosts for the argument `on=` of the operations.

```py
import ripwrap
from ripwrap import remote

host = remote.ssh("build-7", cwd="/srv/src")
async for match in ripwrap.search("TODO", on=host):
    print(match.path, match.line_number)
```
"""

from ripwrap.remote.host import Host, RemoteRg
from ripwrap.remote.transports import Container, SshHost, docker, parse_host, ssh

__all__ = ["Container", "Host", "RemoteRg", "SshHost", "docker", "parse_host", "ssh"]
