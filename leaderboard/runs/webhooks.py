"""Posts to addresses that users have named: to the internet alone, signed, and not for long.

The name is resolved here and the connection made to what it resolved to, so that nothing is asked
twice and told two things (DNS rebinding); redirects are not followed.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit

from django.utils.crypto import salted_hmac

PURPOSE = "leaderboard.runs.webhooks"
PORT = 443
TIMEOUT_S = 5.0
# A resolver takes as long as the name's own servers make it.
_LOOKUPS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="lookup")
UNICAST = ipaddress.ip_network("2000::/3")
# Addresses of IPv6 in which one of IPv4 lies.
TUNNELLED = [ipaddress.ip_network(text) for text in ("2002::/16", "2001::/32")]


class NotSent(Exception):
    """Reports why a message did not arrive, in words for its owner."""


def secret_of(salt: str) -> str:
    """Return the secret of a webhook, which is stored nowhere."""
    return f"pkbwh_{salted_hmac(PURPOSE, salt, algorithm='sha256').hexdigest()}"


def signature(secret: str, timestamp: int, body: bytes) -> str:
    message = f"{timestamp}.".encode() + body
    return "sha256=" + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def post(address: str, secret: str, body: bytes) -> None:
    """Post a signed JSON body. Raises NotSent unless the answer is from 200 to 299."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    timestamp = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "pkb-leaderboard",
        "PKB-Timestamp": str(timestamp),
        "PKB-Signature": signature(secret, timestamp, body),
    }
    target = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    connection = _Pinned(host, public_address(host))
    # A socket's own limit is for each piece of an answer, of which there may be any number.
    guard = threading.Timer(TIMEOUT_S, connection.cut)
    guard.start()
    try:
        connection.request("POST", target, body, headers)
        status = connection.getresponse().status
        if connection.is_late:
            raise TimeoutError  # what had come by then looks like a whole answer
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotSent(f"no answer within {TIMEOUT_S:.0f} s ({type(error).__name__})") from None
    finally:
        guard.cancel()
        connection.close()
    if not 200 <= status < 300:
        raise NotSent(f"answered {status}")


def public_address(host: str) -> str:
    """Return an address of a host. Raises NotSent unless all that it has are of the internet."""
    try:
        lookup = _LOOKUPS.submit(socket.getaddrinfo, host, PORT, type=socket.SOCK_STREAM)
        found = lookup.result(timeout=TIMEOUT_S)
    except TimeoutError:
        raise NotSent(f"the name was not found within {TIMEOUT_S:.0f} s") from None
    except (OSError, UnicodeError):
        raise NotSent("the name has no address") from None
    texts = [str(one[4][0]) for one in found]
    if not texts or not all(map(is_public, texts)):
        raise NotSent("the name has an address that is not of the internet")
    return texts[0]


def is_public(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    is_plain = address.version == 4 or address in UNICAST
    is_tunnelled = any(address in network for network in TUNNELLED)
    return is_plain and not is_tunnelled and address.is_global and not address.is_multicast


class _Pinned(http.client.HTTPSConnection):
    """Connects to one address, and expects the certificate of the name."""

    def __init__(self, host: str, address: str) -> None:
        self._address = address
        self._secured = ssl.create_default_context()
        self.is_late = False
        super().__init__(host, PORT, timeout=TIMEOUT_S, context=self._secured)

    def connect(self) -> None:
        raw = socket.create_connection((self._address, PORT), TIMEOUT_S)
        self.sock = self._secured.wrap_socket(
            raw, server_hostname=self.host, do_handshake_on_connect=False
        )
        if self.is_late:
            raise TimeoutError
        self.sock.do_handshake()

    def cut(self) -> None:
        """End what goes on, or is about to."""
        self.is_late = True
        with suppress(OSError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)
