"""`python -m engine.simulator`: the provider by itself."""

from __future__ import annotations

import argparse
import sys

from engine.simulator.faults import FAULTS
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
    parser.add_argument(
        "--list-faults", action="store_true", help="print the faults that a prompt can ask for"
    )
    return parser.parse_args(argv)


def _list_faults() -> int:
    for fault in FAULTS.values():
        sys.stdout.write(f"[[sim:{fault.name}]]\t{fault.status}\tcharged: {fault.charge}\n")
    return 0


if __name__ == "__main__":
    args = _arguments(sys.argv[1:])
    if args.list_faults:
        sys.exit(_list_faults())
    sys.exit(main(args.port, args.scenario, args.ledger, args.seed, args.parent_watch))
