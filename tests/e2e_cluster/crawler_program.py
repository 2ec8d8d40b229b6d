"""One HTTP request, directly or through a proxy: the same from this machine and from a Pod.

As a program it reads the arguments of `ask` from standard input, as JSON, and writes the answer.
A Pod runs it from its source: the standard library only.
"""

import json
import re
import ssl
import sys
import urllib.error
import urllib.request
from typing import Any


def ask(
    url: str,
    *,
    method: str = "GET",
    proxy: str = "",
    headers: dict[str, str] | None = None,
    body: Any = None,
    authority: str = "",
) -> dict[str, Any]:
    """Return status and text; status 0 where nobody answered, and then the reason as text.

    What a proxy answers to CONNECT, other than 2xx, counts as the answer.
    """
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method, headers=headers or {})
    tls = ssl.create_default_context(cadata=authority or None)
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({"http": proxy, "https": proxy} if proxy else {}),
        urllib.request.HTTPSHandler(context=tls),
    )
    try:
        with opener.open(request, timeout=15) as answer:
            return {"status": answer.status, "text": answer.read().decode()}
    except urllib.error.HTTPError as err:
        with err:
            return {"status": err.code, "text": err.read().decode(errors="replace")}
    except OSError as err:
        refused = re.search(r"Tunnel connection failed: (\d+)", str(err))
        return {"status": int(refused[1]) if refused else 0, "text": str(err)}


if __name__ == "__main__":
    json.dump(ask(**json.load(sys.stdin)), sys.stdout)
