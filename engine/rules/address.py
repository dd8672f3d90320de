"""A base URL that requests can go to, and that may stand in run.json and on screens.

No message repeats the address: it may hold a key.
"""

from __future__ import annotations

import ipaddress
import re

from engine.rules.secrets import SECRET_VALUE

_SCHEME = re.compile(r"https?://[^/?#\\]")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")
_PORT = re.compile(r":([0-9]{1,5})?")
_HOST_LENGTH, _LAST_PORT = 253, 65_535


def check_url(url: str) -> None:
    """Raise ValueError where a base URL is malformed, or holds what would be shown or misused."""
    if not _SCHEME.match(url):
        raise ValueError("must begin with http:// or https:// and name a host")
    authority = re.split(r"[/?#\\]", url.partition("://")[2], maxsplit=1)[0]
    if "@" in authority or SECRET_VALUE.search(url):
        raise ValueError("a user name or key in the address would be written to run.json")
    if not (url.isascii() and url.isprintable()) or " " in url or "\\" in url:
        raise ValueError("holds a blank or a character that no address has; write it as %20 etc.")
    if "?" in url or "#" in url:
        raise ValueError("the address ends with a path such as /v1, without ? or #")
    _check_host(authority)


def _check_host(authority: str) -> None:
    if authority.startswith("["):
        name, closed, rest = authority[1:].partition("]")
        if not closed or not _is_ipv6(name):
            raise ValueError("what stands in [ ] is no IPv6 address")
    else:
        name, colon, port = authority.partition(":")
        rest = colon + port
        if len(name) > _HOST_LENGTH or not _HOST.fullmatch(name):
            raise ValueError("the address names no host that can be looked up")
    if rest and not _is_port(rest):
        raise ValueError(f"the port is no number from 1 to {_LAST_PORT}")


def _is_ipv6(name: str) -> bool:
    try:
        ipaddress.IPv6Address(name)
    except ValueError:
        return False
    return True


def _is_port(rest: str) -> bool:
    match = _PORT.fullmatch(rest)
    return match is not None and (match[1] is None or 1 <= int(match[1]) <= _LAST_PORT)
