"""Text that a terminal only shows."""

from bullpen.text.safe import printable


def test_what_a_terminal_would_obey_is_replaced() -> None:
    assert printable("a\x1b[31mb\x07\r\u202ec\x9b\td\n") == "a\ufffd[31mb\ufffd\ufffd\ufffdc\ufffd\td\n"


def test_what_a_terminal_could_not_print_is_replaced() -> None:
    # A file name that is no UTF-8, as Python tells it.
    assert printable("caf\udce9").encode() == "caf\ufffd".encode()
