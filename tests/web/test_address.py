"""Where the server listens."""

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
    with pytest.raises(CannotListen, match=r"not be encrypted.*--tls-cert"), listening(own, 0, tls=False):
        pass
    with listening(own, 0, tls=True) as (_, place):
        assert place.url.startswith(f"https://{own}:")
        assert not any(host.startswith("localhost") for host in place.hosts)


def _address_of_this_machine() -> str | None:
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: connecting a datagram socket only chooses the address that it would be sent from.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = str(probe.getsockname()[0])
        return None if address.startswith("127.") else address


def test_what_is_no_address_is_said() -> None:
    with pytest.raises(CannotListen, match="not an address of this machine"), listening("no such host", 0, tls=False):
        pass


def test_a_port_that_is_taken_is_said() -> None:
    with listening("127.0.0.1", 0, tls=False) as (taken, _):
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"port {port} cannot be used"), listening("127.0.0.1", port, tls=False):
            pass
