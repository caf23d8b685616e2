"""Without psycopg, which `make test` installs, there is nothing to collect here."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("psycopg") else ["test_*.py"]
