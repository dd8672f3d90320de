"""A theme as what Textual and its strips understand: CSS variables, and one style per role."""

from __future__ import annotations

from functools import lru_cache

from rich.style import Style
from textual.theme import BUILTIN_THEMES
from textual.theme import Theme as TextualTheme

from themes import ROLES, Theme
from tui import glyphs
from tui.draw.paint import Span

_MONO_DIM = frozenset({"dim", "track", "border"})
_MONO_BOLD = frozenset({"bad", "warn"})


class Palette:
    """The styles of a theme. Lines of a canvas name roles; this is where they become colours.

    `ascii` is for terminals and fonts without anything else: see `text`.
    """

    def __init__(self, theme: Theme, *, ascii: bool = False) -> None:  # noqa: A002 - the option's name
        self.theme = theme
        self.ascii = ascii
        self.style = lru_cache(maxsize=256)(self._style)

    def change(self, theme: Theme) -> None:
        """Another theme from now on; what is drawn must be drawn anew."""
        self.theme = theme
        self.style.cache_clear()

    def text(self, text: str) -> str:
        """The text as the terminal can show it, in as many cells."""
        return glyphs.ascii_only(text) if self.ascii else text

    def of(self, span: Span) -> Style:
        """The style of a span."""
        return self.style(span.role, span.bold, span.reverse)

    def _style(self, role: str, bold: bool, reverse: bool) -> Style:
        alarm = role.startswith("alarm_")
        if self.theme.mono:
            return Style(
                bold=bold or role in _MONO_BOLD,
                dim=role in _MONO_DIM,
                reverse=reverse or alarm,
            )
        colors = self.theme.colors
        if alarm:
            return Style(color=colors["alarm_text"], bgcolor=colors[role], bold=bold)
        return Style(color=colors.get(role, colors["text"]), bold=bold, reverse=reverse)

    def textual(self) -> TextualTheme:
        """The theme for Textual: every role as the CSS variable `$eg-<role>`."""
        colors = self.theme.colors or dict.fromkeys(ROLES, "ansi_default")
        variables = {f"eg-{role.replace('_', '-')}": value for role, value in colors.items()}
        return TextualTheme(
            name=f"eaglegen-{self.theme.name}",
            primary=colors["accent"],
            foreground=colors["text"],
            background=colors["background"],
            surface=colors["surface"],
            panel=colors["surface"],
            dark=self.theme.dark,
            ansi=self.theme.mono,
            variables=_colourless() | variables if self.theme.mono else variables,
        )


def _colourless() -> dict[str, str]:
    """The variables that Textual's own styles expect of a theme without colours, all neutral."""
    wanted = BUILTIN_THEMES["ansi-dark"].variables
    neutral = {
        name: value if name.endswith("-style") else "ansi_default" for name, value in wanted.items()
    }
    return neutral | {"input-cursor-text-style": "reverse"}
