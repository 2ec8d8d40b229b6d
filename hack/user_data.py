"""The user data of examples/gcp: squid from Ubuntu's packages, configured by the shared template.

The one rule: no password is in it, only its hash. User data can be read by whoever may look at
the instance, and by everything that runs on it.
"""

import textwrap
from typing import Final

from proxy_operator.adapters.providers.squid.config import SquidSettings, squid_conf

PORT: Final = 3128
USERS_FILE: Final = "/etc/squid/users"
USERNAME: Final = "crawler"
NO_HASH: Final = "*PUT-YOUR-HASH-HERE"
"""crypt(3) returns nothing that begins so: nobody can log in until it is replaced."""

# Deferred files are written after the packages are there, so that the group exists and dpkg finds
# no configuration that it would have to ask about.
_CLOUD_CONFIG: Final = """\
#cloud-config
package_update: true
packages: [squid]
write_files:
  - path: /etc/squid/squid.conf
    owner: root:root
    permissions: "0644"
    defer: true
    content: |
{conf}
  - path: {users_file}
    owner: root:proxy
    permissions: "0640"
    defer: true
    # One line for each user: name, colon, hash. Your line ends in what `openssl passwd -6` prints.
    content: |
      {username}:{no_hash}
runcmd:
  - [systemctl, restart, squid]
"""

_SECRET: Final = """\
# Generated from hack/user_data.py by `make generate`. Put in your hash: docs/clouds-gcp.md.
# What an instance does at its first boot. The label makes the Secret visible to the operator.
apiVersion: v1
kind: Secret
metadata:
  name: squid-user-data
  labels:
    crawl.example.com/cloud-init: "true"
stringData:
  user-data: |
{user_data}"""


def cloud_config() -> str:
    """Return the user data."""
    conf = squid_conf(SquidSettings(port=PORT, users_file=USERS_FILE))
    return _CLOUD_CONFIG.format(
        conf=textwrap.indent(conf.rstrip("\n"), " " * 6),
        users_file=USERS_FILE,
        username=USERNAME,
        no_hash=NO_HASH,
    )


def secret() -> str:
    """Return examples/gcp/20-user-data.yaml: the Secret that holds it."""
    return _SECRET.format(user_data=textwrap.indent(cloud_config(), " " * 4))
