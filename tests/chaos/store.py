"""Where the server under test keeps what it must not lose."""

import contextlib
import os
import secrets
import subprocess
from urllib.parse import urlsplit, urlunsplit

NAMES = ["sqlite", "postgres"]
SERVER = "OSTLER_TEST_POSTGRES"


@contextlib.contextmanager
def lines(name):
    """The lines of its [store] section; what is behind them goes when this does."""
    if name == "sqlite":
        yield 'path = ".ostler/ostler.db"'
        return
    with database(os.environ.get(SERVER)) as url:
        yield f'url = "{url}"'


@contextlib.contextmanager
def database(server):
    if not server:
        raise SystemExit(f"{SERVER} is not set: it names a PostgreSQL server in which databases may be made")
    name = f"ostler_chaos_{secrets.token_hex(6)}"
    sql(server, f"CREATE DATABASE {name}")
    try:
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    finally:
        sql(server, f"DROP DATABASE {name} WITH (FORCE)")


def sql(server, statement):
    subprocess.run(["psql", "--no-psqlrc", "-q", "-d", server, "-c", statement], check=True,
                   stdin=subprocess.DEVNULL, timeout=60)
