"""Where the server listens."""

import socket

import psutil
import pytest

from bullpen.errors import CannotListen
from bullpen.web.address import listening


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.7"])
def test_loopback_needs_nothing(host: str) -> None:
    with listening(host, 0, tls=False) as (listener, place):
        port = listener.getsockname()[1]
        assert place.url == f"http://{host}:{port}"
        assert f"localhost:{port}" in place.hosts


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
@pytest.mark.parametrize("tls", [False, True])
def test_every_address_at_once_is_refused(host: str, tls: bool) -> None:
    with pytest.raises(CannotListen, match=r"all addresses|cannot be used|not an address"), listening(host, 0, tls=tls):
        pass


def test_another_address_needs_encryption(monkeypatch: pytest.MonkeyPatch) -> None:
    own = _address_of_this_machine()
    if own is None:
        pytest.skip("THIS MACHINE HAS NO ADDRESS BUT LOOPBACK")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(socket.AF_INET, 0, 0, "", (own, 0))])
    with pytest.raises(CannotListen, match=r"not be encrypted.*--tls-cert"), listening(own, 0, tls=False):
        pass
    with listening(own, 0, tls=True) as (_, place):
        assert place.url.startswith(f"https://{own}:")
        assert not any(host.startswith("localhost") for host in place.hosts)


def _address_of_this_machine() -> str | None:
    addresses = [one.address for all_ in psutil.net_if_addrs().values() for one in all_ if one.family == socket.AF_INET]
    return next((one for one in addresses if not one.startswith("127.")), None)


def test_what_is_no_address_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(CannotListen, match="not an address of this machine"), listening("no such host", 0, tls=False):
        pass


def test_a_port_that_is_taken_is_said() -> None:
    with listening("127.0.0.1", 0, tls=False) as (taken, _):
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"port {port} cannot be used"), listening("127.0.0.1", port, tls=False):
            pass
