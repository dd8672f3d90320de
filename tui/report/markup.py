"""HTML and SVG as trees: text from outside becomes text whatever it holds, by construction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from engine import format as fmt

Element = ET.Element
Child = Element | str | None | Iterable["Child"]
Cell = Child
_MASKED = "***"
_SECRETS = re.compile(
    r"(?i)\b(?:bearer|basic)\s+[^\s\"',;]{6,}"
    r"|(?<![a-z])(?:sk|pk|hf|ghp|xoxb)[-_][\w./+=-]{6,}"
    r"|\b(?:authorization|api[-_ ]?key|token|password|secret)\b[\"']?\s*[:=]\s*[\"']?"
    r"(?:(?:bearer|basic)\s+)?[^\s\"',;]{6,}"
)
"""What looks like a key. The engine masks its own; other people's may stand in a server's words."""


def el(tag: str, *children: Child, **attributes: object) -> Element:
    """An element; `class_` is the attribute `class`, `stroke_width` is `stroke-width`."""
    named = {name.rstrip("_").replace("_", "-"): str(value) for name, value in attributes.items()}
    element = Element(tag, named)
    _append(element, children)
    return element


def _append(element: Element, children: Iterable[Child]) -> None:
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            _append_text(element, child)
        elif isinstance(child, Element):
            element.append(child)
        else:
            _append(element, child)


def _append_text(element: Element, text: str) -> None:
    if len(element):
        last = element[-1]
        last.tail = (last.tail or "") + text
    else:
        element.text = (element.text or "") + text


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without these secrets, nor what looks like one."""
    for secret in secrets:
        text = text.replace(secret, _MASKED)
    return _SECRETS.sub(_MASKED, text)


class Outside:
    """Shows text that others wrote: control and bidi characters visible, keys masked, isolated."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(secret for secret in secrets if len(secret) >= 6)  # noqa: PLR2004 - a shorter one is a word

    def masked(self, text: str) -> str:
        """Without what is secret or looks like it."""
        return masked(text, self._secrets)

    def text(self, text: str, most: int = 400) -> str:
        """As one safe line of at most `most` characters."""
        safe = fmt.safe_text(self.masked(text))
        return safe if len(safe) <= most else safe[: most - 1] + "…"

    def __call__(self, text: str, most: int = 400) -> Element:
        """In an element of its own, so that right-to-left letters move nothing around them."""
        return el("bdi", self.text(text, most))


def table(heads: Sequence[str], rows: Iterable[Sequence[Cell]], *, numbers: str = "") -> Element:
    """A table; `numbers` has an `r` for each column that is aligned to the right."""
    sides = numbers.ljust(len(heads), ".")
    kinds = ["n" if side == "r" else "t" for side in sides]
    head = el("tr", [el("th", text, class_=kind, scope="col") for text, kind in _zip(heads, kinds)])
    body = [
        el("tr", [el("td", cell, class_=kind) for cell, kind in _zip(row, kinds)]) for row in rows
    ]
    return el("div", el("table", el("thead", head), el("tbody", body)), class_="wide")


def _zip(cells: Sequence[Cell], kinds: Sequence[str]) -> list[tuple[Cell, str]]:
    return list(zip(cells, kinds, strict=True))


def page(head: Iterable[Child], body: Iterable[Child], outside: Outside) -> bytes:
    """The whole document; no secret is in any text of it, wherever that came from."""
    root = el("html", el("head", head), el("body", body), lang="en")
    for element in root.iter():
        if element.tag != "style":
            element.text = outside.masked(element.text or "")
        element.tail = outside.masked(element.tail or "")
    text = ET.tostring(root, encoding="unicode", method="html")
    return f"<!doctype html>\n{text}\n".encode()
