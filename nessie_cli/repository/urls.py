"""The URLs of repositories."""


def is_server(url: str) -> bool:
    """Returns whether a URL names a server, not a store."""
    return url.startswith(("http://", "https://"))
