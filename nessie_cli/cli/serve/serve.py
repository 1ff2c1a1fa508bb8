"""`nessie serve`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.serve.options import (
    AllowLocationOption,
    WarehousesOption,
    port_option,
    warehouse_option,
    warehouses_of,
)
from nessie_cli.errors import InvalidInput
from nessie_cli.model import Secret
from nessie_cli.workspace import environment as env

if TYPE_CHECKING:
    from nessie_cli.server import JwtSettings, OidcSettings, Security, Tls

ROLES_CLAIM, NAME_CLAIM = "roles", "sub"
EXAMPLES = (
    "nessie serve",
    "nessie serve --store sqlite:////srv/catalog.sqlite --port 19120",
    "nessie serve --store memory: --access-log",
    "nessie serve --warehouse /srv/lake",
    "nessie serve --warehouse lake=s3://lake/tables --allow-location s3://landing",
    "nessie serve --allowed-host catalog.example.com",
    "nessie serve --tokens tokens --rules rules.toml --open-metrics",
    "nessie serve --tokens tokens --public-url https://catalog.example.com",
)


class Options(Struct, frozen=True, kw_only=True):
    """Serve the store over Nessie's REST API and, with --warehouse, Iceberg REST.

    Serves versions 2 and 1 of Nessie's API until the process is stopped. The store must exist.
    `--store memory:` is a new, empty store, which is lost when the server stops. Before it stops,
    the server finishes the requests that it has accepted, for at most 20 seconds.

    Environment variables such as NESSIE_SERVE_TOKENS are the defaults of many of these options;
    nessie(1) lists them.
    """

    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="The address to listen on.")
    ] = "127.0.0.1"
    port: Annotated[
        int,
        port_option("--port", "The port to listen on; 0 selects a free port."),
    ] = 19120
    management_port: Annotated[
        int | None,
        port_option(
            "--management-port",
            "Also answer health checks and metrics on this port, over plain HTTP. Clients"
            " that fill the main port do not delay them.",
        ),
    ] = None
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure",
            help="Start even if other machines can reach the address and neither required tokens"
            " nor --rules restrict callers.",
        ),
    ] = False
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            metavar="NAME",
            help="Answer under this host name; repeatable, or with commas. Implies --insecure."
            " localhost, loopback addresses and the name of --host (but not 0.0.0.0 or ::) are"
            " always accepted. Default: NESSIE_ALLOWED_HOSTS. Without either, a server that other"
            " machines can reach answers under every IP address, and if all callers must"
            " authenticate, also under every name.",
        ),
    ] = None
    public_url: Annotated[
        str | None,
        typer.Option(
            "--public-url",
            metavar="URL",
            help="The URL under which browsers reach the server through a proxy, such as"
            " https://catalog.example.com. Its host name is accepted, and with https, cookies are"
            " for TLS only. Default: NESSIE_SERVE_PUBLIC_URL.",
        ),
    ] = None
    workers: Annotated[
        int,
        typer.Option(
            "--workers", metavar="N", min=1, max=64, help="The number of server processes."
        ),
    ] = 1
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help="Require a token from callers, and accept those in FILE, which `nessie token new`"
            " writes.",
        ),
    ] = None
    jwt_issuer: Annotated[
        str | None,
        typer.Option(
            "--jwt-issuer",
            metavar="NAME",
            help="Require a token from callers, and accept JSON Web Tokens from this issuer (claim"
            " iss). --jwt-audience is required.",
        ),
    ] = None
    jwt_audience: Annotated[
        str | None,
        typer.Option(
            "--jwt-audience",
            metavar="NAME",
            help="Accept only JSON Web Tokens for this audience (claim aud).",
        ),
    ] = None
    jwt_keys: Annotated[
        str | None,
        typer.Option(
            "--jwt-keys",
            metavar="FILE",
            help="The issuer's public keys, a file or URL. Default: from its OpenID configuration.",
        ),
    ] = None
    jwt_roles: Annotated[
        str,
        typer.Option(
            "--jwt-roles",
            metavar="NAME",
            help="The claim that contains the roles. It may be nested, such as realm_access.roles.",
        ),
    ] = ROLES_CLAIM
    jwt_name: Annotated[
        str,
        typer.Option(
            "--jwt-name", metavar="NAME", help="The claim that contains the caller's name."
        ),
    ] = NAME_CLAIM
    oidc_client: Annotated[
        str | None,
        typer.Option(
            "--oidc-client",
            metavar="ID",
            help="Let people log in to the pages at --jwt-issuer by OpenID Connect; ID is the"
            " client of this server there. --public-url is required. Its path /ui/login/callback is"
            " the redirect URI of the client. Default: NESSIE_SERVE_OIDC_CLIENT.",
        ),
    ] = None
    oidc_secret: Annotated[
        Path | None,
        typer.Option(
            "--oidc-secret",
            metavar="FILE",
            help="The file with the secret of the client. Default: the secret is in"
            " NESSIE_SERVE_OIDC_SECRET. Without either, the client has no secret.",
        ),
    ] = None
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            metavar="FILE",
            help="Allow only what the rules of FILE grant to a caller. Needs --tokens, --jwt-issuer"
            " or --anonymous.",
        ),
    ] = None
    anonymous: Annotated[
        bool,
        typer.Option(
            "--anonymous",
            help="Allow callers without a token. In the rules, their name and roles are empty.",
        ),
    ] = False
    open_metrics: Annotated[
        bool, typer.Option("--open-metrics", help="Answer /q/metrics without a token.")
    ] = False
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            "--tls-cert",
            metavar="FILE",
            help="Use TLS. FILE contains the certificate, followed by its chain (PEM).",
        ),
    ] = None
    tls_key: Annotated[
        Path | None,
        typer.Option(
            "--tls-key",
            metavar="FILE",
            help="The file with the private key. Default: the file of --tls-cert. If the key is"
            " encrypted, NESSIE_TLS_KEY_PASSWORD contains the password.",
        ),
    ] = None
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(
            "--tls-client-ca",
            metavar="FILE",
            help="Accept only clients with a certificate signed by a CA in FILE (PEM).",
        ),
    ] = None
    warehouse: Annotated[
        list[str] | None,
        warehouse_option(
            "Also serve Iceberg REST under /iceberg, with tables at this location; repeatable."
            " The first warehouse is the default."
        ),
    ] = None
    allow_location: AllowLocationOption = None
    warehouses: WarehousesOption = None
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log requests to stdout, as lines of JSON.")
    ] = False


def run(options: Options, app: Invocation) -> None:
    """Serves until the process is stopped."""
    from nessie_cli.repository.opening import connect_store
    from nessie_cli.repository.urls import is_server
    from nessie_cli.server import Listeners, ServerSettings, serve

    url = app.store.url()
    if is_server(url):
        raise InvalidInput(
            f"{url} is already a server",
            hint="clients can use it directly. To serve its store, name the store",
        )
    warehouses = warehouses_of(options.warehouse, options.allow_location, options.warehouses)
    stream = sys.stdout.buffer if options.access_log else sys.stderr.buffer

    def started(address: str) -> None:
        app.output.note(
            f"serving {url} at {address}/api/v2, API documentation at {address}/api/docs,"
            f" web interface at {address}/ui"
        )
        if warehouses is not None:
            names = ", ".join(
                f"{warehouse.name} ({warehouse.location})" for warehouse in warehouses.all
            )
            app.output.note(f"Iceberg REST at {address}/iceberg; warehouses: {names}")

    def write(lines: bytes) -> None:
        # A buffer would keep lines that could not be written, and write them later.
        rest = memoryview(lines)
        while rest:
            rest = rest[os.write(stream.fileno(), rest) :]

    security = _security(options)
    settings = ServerSettings(
        options.host,
        options.port,
        options.insecure,
        workers=options.workers,
        security=security,
        tls=_tls(options),
        allowed_hosts=_host_names(options.allowed_host),
        warehouses=warehouses,
        management_port=options.management_port,
        public_url=options.public_url or env.variable(env.SERVE_PUBLIC_URL) or "",
        oidc=_oidc(options, security.jwt),
    )
    listeners = Listeners(started, write, faults=not options.access_log)
    serve(lambda: connect_store(url), settings, listeners)


def show(result: None, output: object) -> None:
    """Prints nothing: the server has stopped."""


def _security(options: Options) -> "Security":
    from nessie_cli.server import Security

    tokens = _file(options.tokens, env.SERVE_TOKENS)
    rules = _file(options.rules, env.SERVE_RULES)
    return Security(tokens, rules, options.anonymous, options.open_metrics, _jwt(options))


def _jwt(options: Options) -> "JwtSettings | None":
    """Returns the accepted JSON Web Tokens, by options or variables. None without an issuer."""
    issuer = options.jwt_issuer or env.variable(env.SERVE_JWT_ISSUER)
    audience = options.jwt_audience or env.variable(env.SERVE_JWT_AUDIENCE)
    keys = options.jwt_keys or env.variable(env.SERVE_JWT_KEYS)
    if issuer is None:
        claims = options.jwt_roles != ROLES_CLAIM or options.jwt_name != NAME_CLAIM
        if audience or keys or claims:
            raise InvalidInput(
                "--jwt-audience, --jwt-keys, --jwt-roles and --jwt-name need --jwt-issuer, which"
                " enables JSON Web Tokens"
            )
        return None
    from nessie_cli.server import JwtSettings

    return JwtSettings(issuer, audience or "", keys, options.jwt_roles, options.jwt_name)


def _oidc(options: Options, jwt: "JwtSettings | None") -> "OidcSettings | None":
    """Returns the client at the issuer, by options or variables. None without a client."""
    client = options.oidc_client or env.variable(env.SERVE_OIDC_CLIENT)
    if client is None:
        if options.oidc_secret is not None:
            raise InvalidInput("--oidc-secret needs --oidc-client")
        return None
    if jwt is None:
        raise InvalidInput("--oidc-client needs --jwt-issuer, at which people log in")
    from nessie_cli.server import OidcSettings, read_secret

    if options.oidc_secret is not None:
        secret: Secret | None = read_secret(options.oidc_secret)
    else:
        text = env.variable(env.SERVE_OIDC_SECRET)
        secret = Secret(text) if text else None
    return OidcSettings(jwt.issuer, client, secret, jwt.roles, jwt.name, jwt.keys)


def _tls(options: Options) -> "Tls | None":
    """Returns the files of TLS, with the password of the key from the environment."""
    certificate = _file(options.tls_cert, env.SERVE_TLS_CERT)
    key = _file(options.tls_key, env.SERVE_TLS_KEY)
    client_ca = _file(options.tls_client_ca, env.SERVE_TLS_CLIENT_CA)
    if certificate is None:
        if key is not None or client_ca is not None:
            raise InvalidInput("--tls-key and --tls-client-ca need --tls-cert, which enables TLS")
        return None
    from nessie_cli.server import Tls

    password = env.variable(env.TLS_KEY_PASSWORD)
    return Tls(certificate, key, client_ca, Secret(password) if password else None)


def _host_names(given: list[str] | None) -> tuple[str, ...]:
    texts = given or [env.variable(env.ALLOWED_HOSTS) or ""]
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


def _file(given: Path | None, variable: str) -> Path | None:
    path = given or env.variable(variable)
    return Path(path) if path else None
