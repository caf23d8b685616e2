"""The address of a database: read, completed with our settings, and shown without its password."""

from msgspec import Struct
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from bullpen.errors import BullpenError

# A server that does not answer is noticed within seconds; the address may say otherwise.
KEEPALIVES = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
DEFAULTS: dict[str, str | int] = {
    "connect_timeout": 10,
    **KEEPALIVES,
    "tcp_user_timeout": 15_000,
    "application_name": "bullpen",
}
REQUIRED: dict[str, str | int] = {"client_encoding": "utf8"}
NO_ADDRESS = "This is not an address of PostgreSQL. It looks like postgresql://user@host:5432/database"


class Address(Struct, frozen=True):
    """Where a database is."""

    parameters: dict[str, str | int]
    shown: str
    """For people: without the password."""

    def without_password(self, text: str) -> str:
        """Return a sentence of the server or the library as it may be shown."""
        password = str(self.parameters.get("password") or "")
        return text.replace(password, "…") if password else text


def read_address(url: str) -> Address:
    """Return the address in an URL, or raise BullpenError without a word of it, for it may hold a password."""
    try:
        given = {name: value for name, value in conninfo_to_dict(url).items() if value is not None}
    except ProgrammingError:
        raise BullpenError(f"{NO_ADDRESS} (percent-encode special characters in the password).") from None
    host, port = given.get("host") or "", given.get("port")
    user = f"{given['user']}@" if "user" in given else ""
    where = f"{host}:{port}" if port else f"{host}"
    shown = f"postgresql://{user}{where}/{given.get('dbname') or ''}"
    return Address({**DEFAULTS, **given, **REQUIRED}, shown)
