"""Run rg on another machine over ssh, or in a container: hosts for the argument `on=` of the operations.

```py
import ripwrap
from ripwrap import remote

host = remote.ssh("build-7", cwd="/srv/src")
async for match in ripwrap.search("TODO", on=host):
    print(match.path, match.line_number)
```
"""

from ripwrap._ripgrep.host import RgHost
from ripwrap.remote.finding import RemoteRg
from ripwrap.remote.host import Host
from ripwrap.remote.transports import Container, SshHost, docker, parse_host, ssh

__all__ = ["Container", "Host", "RemoteRg", "RgHost", "SshHost", "docker", "parse_host", "ssh"]
