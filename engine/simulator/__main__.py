"""`python -m engine.simulator`: the provider by itself."""

from __future__ import annotations

import argparse
import sys

from engine.simulator.process import main


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m engine.simulator", description="A local OpenRouter-like provider."
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--scenario", help="a TOML file, or the name of a built-in scenario")
    parser.add_argument("--ledger", help="append one JSON line per request to this file")
    parser.add_argument("--seed", type=int, help="overrides the scenario's seed")
    parser.add_argument(
        "--parent-watch", action="store_true", help="end when stdin closes, as the parent does"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    args = _arguments(sys.argv[1:])
    sys.exit(main(args.port, args.scenario, args.ledger, args.seed, args.parent_watch))
