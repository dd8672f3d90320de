"""A local OpenRouter-like provider: a real HTTP server with faults, weather, money and a ledger."""

from __future__ import annotations

from engine.simulator.http import Simulator, serve
from engine.simulator.process import main
from engine.simulator.scenario import Scenario, ScenarioError

__all__ = ["Scenario", "ScenarioError", "Simulator", "main", "serve"]
