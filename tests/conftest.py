"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# a loaded machine is no counterexample, and the first example may load a vocabulary
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
