"""Where the server listens: on loopback, or elsewhere with TLS. The address that was actually bound decides.

A proxy in front of it, or of several nodes, may have another address, which people use then.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from urllib.parse import urlsplit

from msgspec import Struct

from bullpen.errors import CannotListen

DEFAULT_PORTS = {"http": 80, "https": 443}


class Place(Struct, frozen=True, kw_only=True):
    """One address, and the host names that a browser may use for it."""

    scheme: str
    hosts: tuple[str, ...]
    """The values that a Host header may have; the first one is shown to people."""
    cluster: str = ""
    """The name of the cluster that it is a part of: a browser that is signed in to one node is so to all."""
    public: str = ""
    """The address of the proxy in front of it, as an origin; empty: there is none."""

    @property
    def url(self) -> str:
        """The address for people, without a trailing slash."""
        return self.public or f"{self.scheme}://{self.hosts[0]}"

    @property
    def origins(self) -> frozenset[str]:
        """The only values of an Origin header."""
        own = [f"{self.scheme}://{host}" for host in self.hosts]
        return frozenset([*own, self.public] if self.public else own)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return not self.public and any(host.partition(":")[0] == "localhost" for host in self.hosts)

    def is_known(self, host: str) -> bool:
        """Return whether this is a value that a Host header may have."""
        return host in self.hosts or self.is_public(host)

    def is_public(self, host: str) -> bool:
        """Return whether a request with this Host came through the proxy, which must leave it as it is."""
        return bool(self.public) and host == self.public.partition("://")[2]

    def is_secure(self, host: str) -> bool:
        """Return whether a browser that asks for this host has an encrypted connection."""
        return (self.public if self.is_public(host) else self.scheme).startswith("https")

    @property
    def port(self) -> int:
        """The port."""
        port = self.hosts[0].rpartition(":")[2]
        return int(port) if port.isdecimal() else DEFAULT_PORTS[self.scheme]

    @property
    def cookie(self) -> str:
        """The cookie's name: cookies ignore ports, and another bullpen server may run on this machine."""
        if self.cluster:
            return f"bullpen-{self.cluster}"
        port = self.hosts[0].rpartition(":")[2]
        return f"bullpen-{port if port.isdecimal() else self.scheme}"


@contextmanager
def listening(host: str, port: int, *, tls: bool, earlier: int = 0) -> Iterator[tuple[socket.socket, Place]]:
    """Yield a socket that listens on a host and port; raise CannotListen if that fails.

    Port 0 is the one of an earlier server, if it is free, so that browsers find this one again; else any free one.
    """
    family, address = _resolved(host)
    # With IPPROTO_TCP, since asyncio sends small pieces at once only on explicit TCP sockets.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            _bind(listener, address, port, earlier)
        except OSError as error:
            raise CannotListen(
                host, f"port {port} cannot be used: {error.strerror}", "Choose another --port."
            ) from error
        bound = listener.getsockname()
        _require_safe(host, bound[0], tls=tls)
        yield listener, place_of(host, bound[0], bound[1], tls=tls)


def public_origin(text: str) -> str:
    """Return the address of a proxy as browsers name it in Origin headers; ValueError is raised if it cannot be one."""
    parts = urlsplit(text)
    host, port = parts.hostname or "", parts.port
    if not host or parts.scheme not in DEFAULT_PORTS or parts.username is not None:
        raise ValueError("must be an address such as https://bullpen.example")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must end with the name or the port: pages are at the root of their address")
    if parts.scheme == "http" and not _is_loopback(host):
        raise ValueError("must begin with https://, or keys would cross the network unencrypted")
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + ("" if port in (None, DEFAULT_PORTS[parts.scheme]) else f":{port}")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _bind(listener: socket.socket, address: str, port: int, earlier: int) -> None:
    if port == 0 and earlier:
        try:
            listener.bind((address, earlier))
        except OSError:
            pass
        else:
            return
    listener.bind((address, port))


def place_of(host: str, address: str, port: int, *, tls: bool) -> Place:
    """Return the names of an address."""
    scheme = "https" if tls else "http"
    names = [host, address, *(["localhost"] if ip_address(address).is_loopback else [])]
    bracketed = dict.fromkeys(f"[{name}]" if ":" in name else name.lower() for name in names)
    suffix = "" if port == DEFAULT_PORTS[scheme] else f":{port}"
    return Place(scheme=scheme, hosts=tuple(f"{name}{suffix}" for name in bracketed))


def _resolved(host: str) -> tuple[socket.AddressFamily, str]:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise CannotListen(host, "is not an address of this machine", "Omit --host to listen on loopback.") from error
    return family, str(address[0])


def _require_safe(host: str, address: str, *, tls: bool) -> None:
    if ip_address(address).is_unspecified:
        raise CannotListen(
            host, "means all addresses", "Choose one with --host: the one that your colleagues will open."
        )
    if not tls and not ip_address(address).is_loopback:
        raise CannotListen(
            host,
            "can be reached from other machines, and the connection would not be encrypted",
            "Add --tls-cert and --tls-key, or omit --host to listen on loopback.",
        )
