"""Where a person's own files are: the keymap, and themes of their own."""

from __future__ import annotations

from pathlib import Path

import platformdirs


def config_folder() -> Path:
    """The folder for `keys.toml` and `themes/`; on Linux below $XDG_CONFIG_HOME or ~/.config."""
    return platformdirs.user_config_path("eaglegen-tui", appauthor=False)
