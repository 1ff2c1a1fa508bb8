"""A browser without scripts: follows links and redirects, sends forms, checks what it gets."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from tests.server.client import Answer, Client

_VOID = frozenset({"meta", "link", "input", "br", "line", "circle", "path", "rect", "polyline"})
OF_OTHER_PAGES: list[dict[str, str]] = [
    {},
    {"origin": "http://elsewhere.example"},
    {"origin": "null"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "none"},
]
"""Headers of forms that no page of the server has sent."""


class Element(NamedTuple):
    """An element of a page: its tag and attributes."""

    tag: str
    attributes: dict[str, str]


class Page(HTMLParser):
    """A page: its text, elements and forms. Raises `AssertionError` for unbalanced elements."""

    def __init__(self, status: int, html: str) -> None:
        super().__init__()
        self.status = status
        self.elements: list[Element] = []
        self.forms: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self._textarea = ""
        self.feed(html)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        assert len(attributes) == len(attrs), (tag, attrs)
        self.elements.append(Element(tag, attributes))
        if tag not in _VOID:
            self._open.append(tag)
        if tag == "form":
            self.forms.append({"action": attributes.get("action", ""), "fields": {}})
        if tag == "textarea":
            self._textarea = attributes["name"]
            self.forms[-1]["fields"][self._textarea] = ""
        is_off = attributes.get("type") in ("radio", "checkbox") and "checked" not in attributes
        if tag == "input" and "name" in attributes and not is_off:
            self.forms[-1]["fields"][attributes["name"]] = attributes.get("value", "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, tag
        if tag == "textarea":
            self._textarea = ""
        assert self._open.pop() == tag, (tag, self._open)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._textarea:
            self.forms[-1]["fields"][self._textarea] += data

    @property
    def text(self) -> str:
        """The text of the page, with single spaces."""
        return " ".join(" ".join(self.texts).split())

    @property
    def links(self) -> list[str]:
        """The addresses of all links."""
        return [each.attributes["href"] for each in self.elements if each.tag == "a"]

    @property
    def next(self) -> str:
        """The address of the next part of a list, or an empty text."""
        links = (each.attributes for each in self.elements if each.tag == "a")
        return next((link["href"] for link in links if link.get("rel") == "next"), "")

    @property
    def graph_rows(self) -> list[list[dict[str, str]]]:
        """The lines of the graph beside each commit."""
        rows: list[list[dict[str, str]]] = []
        for each in self.elements:
            if each.tag == "svg" and each.attributes.get("class") == "lanes":
                rows.append([])
            if each.tag == "line":
                rows[-1].append(each.attributes)
        return rows

    def form(self, action: str) -> dict[str, str]:
        """Returns the fields of the first form with an action."""
        return next(form["fields"] for form in self.forms if form["action"].startswith(action))


class Browser:
    """Visits pages of a server, and keeps its cookies."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.cookies: dict[str, str] = {}
        self.url = ""
        """The address of the last page."""

    def get(self, url: str) -> Page:
        """Returns a page, over redirects."""
        self.url = url
        return self._page(self.answer("GET", url))

    def post(self, action: str, **fields: str) -> Page:
        """Sends a form as a page of the server does; returns the page that follows."""
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "sec-fetch-site": "same-origin",
        }
        return self._page(self.answer("POST", action, urlencode(fields).encode(), headers))

    def answer(
        self, method: str, url: str, raw: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Returns the answer to one request."""
        sent = {"accept": "text/html"}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = self.client.send(method, url, raw=raw, headers=sent | (headers or {}))
        if "set-cookie" in answer.headers:
            for cookie in answer.headers["set-cookie"].split("\n"):
                self._keep(cookie)
        return answer

    def _keep(self, cookie: str) -> None:
        name, _, value = cookie.partition(";")[0].partition("=")
        if "max-age=0" in cookie.lower():
            self.cookies.pop(name, None)
        else:
            self.cookies[name] = value

    def _page(self, answer: Answer) -> Page:
        if answer.status in (302, 303, 307):
            parts = urlsplit(answer.headers["location"])
            assert not parts.netloc, answer.headers
            return self.get(answer.headers["location"])
        return Page(answer.status, answer.raw.decode())
