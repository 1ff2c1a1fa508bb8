"""`nessie serve`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.errors import InvalidInput
from nessie_cli.workspace import environment as env

if TYPE_CHECKING:
    from nessie_cli.server import JwtSettings, Tls

EXAMPLES = (
    "nessie serve",
    "nessie serve --store sqlite:////srv/catalog.sqlite --port 19120",
    "nessie serve --store memory: --access-log",
    "nessie serve --allowed-host catalog.example.com",
    "nessie serve --tokens tokens --rules rules.toml --open-metrics",
)
Insecure = Annotated[bool, typer.Option("--insecure", help="Listen on an address that others reach, though nobody is asked who they are.")]
AllowedHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-host",
        metavar="NAME",
        help="Answer under this host name too; repeated, or with commas. Loopback names are always allowed.",
        show_default=False,
    ),
]
TokenFile = Annotated[
    Path | None, typer.Option("--tokens", metavar="FILE", help="Ask callers for their tokens; `nessie token new` writes FILE.", show_default=False)
]
JwtIssuer = Annotated[
    str | None,
    typer.Option("--jwt-issuer", metavar="NAME", help="Take the JSON Web Tokens of this issuer, as its claim iss says it.", show_default=False),
]
JwtAudience = Annotated[
    str | None,
    typer.Option("--jwt-audience", metavar="NAME", help="Of those take the ones whose claim aud names this server so.", show_default=False),
]
JwtKeys = Annotated[
    str | None,
    typer.Option(
        "--jwt-keys", metavar="FILE", help="The issuer's public keys: a file or URL; else its OpenID document names them.", show_default=False
    ),
]
JwtRoles = Annotated[str, typer.Option("--jwt-roles", metavar="NAME", help="The claim with the roles; realm_access.roles is a nested one.")]
JwtName = Annotated[str, typer.Option("--jwt-name", metavar="NAME", help="The claim with the caller's name.")]
RuleFile = Annotated[
    Path | None, typer.Option("--rules", metavar="FILE", help="Allow callers what the rules of FILE say, and nothing else.", show_default=False)
]
Anonymous = Annotated[bool, typer.Option("--anonymous", help="Let callers in who bring no token; for rules they have neither name nor role.")]
TlsCertificate = Annotated[
    Path | None,
    typer.Option("--tls-cert", metavar="FILE", help="Speak TLS with this certificate; a chain behind it, all in PEM form.", show_default=False),
]
TlsKey = Annotated[
    Path | None,
    typer.Option(
        "--tls-key",
        metavar="FILE",
        help="The certificate's key, where it is not in the same file; NESSIE_TLS_KEY_PASSWORD opens it.",
        show_default=False,
    ),
]
TlsClientCa = Annotated[
    Path | None,
    typer.Option("--tls-client-ca", metavar="FILE", help="Take only clients with a certificate that this CA has signed.", show_default=False),
]
OpenMetrics = Annotated[bool, typer.Option("--open-metrics", help="Answer /q/metrics without a token.")]


def serve(
    ctx: typer.Context,
    *,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 19120,
    insecure: Insecure = False,
    allowed_host: AllowedHost = None,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, max=64, help="How many processes answer requests.")] = 1,
    tokens: TokenFile = None,
    jwt_issuer: JwtIssuer = None,
    jwt_audience: JwtAudience = None,
    jwt_keys: JwtKeys = None,
    jwt_roles: JwtRoles = "roles",
    jwt_name: JwtName = "sub",
    rules: RuleFile = None,
    anonymous: Anonymous = False,
    open_metrics: OpenMetrics = False,
    tls_cert: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_client_ca: TlsClientCa = None,
    access_log: Annotated[bool, typer.Option("--access-log", help="Write one JSON line for each request to stdout.")] = False,
) -> None:
    """Serve the store by Nessie's REST API, v2 and v1, until the process is stopped.

    The store has to exist; `memory:` is a new, empty one that lasts as long as the server. Requests that were accepted are finished.
    """
    call = Invocation.of(ctx)
    from nessie_cli.cli.later import load_all
    from nessie_cli.repository.opening import connect
    from nessie_cli.server import Listeners, Security, Settings, serve

    load_all()
    url = call.store_url()
    if url.startswith(("http://", "https://")):
        raise InvalidInput(f"{url} is served already: its clients can ask it themselves, as who they are; serve the store behind it")
    stream = sys.stdout.buffer if access_log else sys.stderr.buffer

    def started(address: str) -> None:
        call.note(f"serving {url} at {address}/api/v2, described at {address}/api/docs")

    def write(lines: bytes) -> None:
        stream.write(lines)
        stream.flush()

    jwt = jwt_of(jwt_issuer, jwt_audience, jwt_keys, jwt_roles, jwt_name)
    security = Security(named(tokens, env.SERVE_TOKENS), named(rules, env.SERVE_RULES), anonymous, open_metrics, jwt)
    tls = tls_of(named(tls_cert, env.SERVE_TLS_CERT), named(tls_key, env.SERVE_TLS_KEY), named(tls_client_ca, env.SERVE_TLS_CLIENT_CA))
    settings = Settings(host, port, insecure, workers=workers, security=security, tls=tls, allowed_hosts=host_names(allowed_host))
    serve(lambda: connect(url), settings, Listeners(started, write, faults=not access_log))


def jwt_of(issuer: str | None, audience: str | None, keys: str | None, roles: str, name: str) -> "JwtSettings | None":
    """Whose JSON Web Tokens are taken; None for nobody's."""
    issuer = issuer or env.variable(env.SERVE_JWT_ISSUER)
    audience, keys = audience or env.variable(env.SERVE_JWT_AUDIENCE), keys or env.variable(env.SERVE_JWT_KEYS)
    if issuer is None:
        if audience or keys:
            raise InvalidInput("--jwt-audience and --jwt-keys need --jwt-issuer: it is what turns JSON Web Tokens on")
        return None
    from nessie_cli.server import JwtSettings

    return JwtSettings(issuer, audience or "", keys, roles, name)


def tls_of(certificate: Path | None, key: Path | None, client_ca: Path | None) -> "Tls | None":
    """The files of TLS, and the password of the key from the environment; None where there is to be no TLS."""
    if certificate is None:
        if key is not None or client_ca is not None:
            raise InvalidInput("--tls-key and --tls-client-ca need --tls-cert: it is what turns TLS on")
        return None
    from nessie_cli.model import Secret
    from nessie_cli.server import Tls

    password = env.variable(env.TLS_KEY_PASSWORD)
    return Tls(certificate, key, client_ca, Secret(password) if password else None)


def host_names(given: list[str] | None) -> tuple[str, ...]:
    """The host names of the option, otherwise those of `NESSIE_ALLOWED_HOSTS`."""
    texts = given or [env.variable(env.ALLOWED_HOSTS) or ""]
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


def named(given: Path | None, variable: str) -> Path | None:
    """The file of an option, else that of the environment variable that stands for it."""
    found = given or env.variable(variable)
    return Path(found) if found else None
