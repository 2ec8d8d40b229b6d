"""`python -m tests.simulation --seeds N --first-seed M`: a line for each seed that fails."""

import argparse
import logging
import multiprocessing
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.simulation.run import Verdict, simulate


def main(args: Sequence[str] | None = None) -> int:
    """Play the seeds, on every core there is, and return 1 when one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=50, help="how many (default: 50)")
    parser.add_argument("--first-seed", type=int, default=1, help="the first one (default: 1)")
    asked = parser.parse_args(args)
    logging.disable(logging.CRITICAL)
    started = time.perf_counter()
    verdicts = []
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
        for done in as_completed([pool.submit(simulate, seed) for seed in seeds]):
            verdict = done.result()
            verdicts.append(verdict)
            if verdict.wrong:
                print(_line(verdict), flush=True)
    print(_summary(verdicts, time.perf_counter() - started))
    return 1 if any(verdict.wrong for verdict in verdicts) else 0


def _line(verdict: Verdict) -> str:
    found = " | ".join(verdict.wrong[:3])
    more = f" | and {len(verdict.wrong) - 3} more" if len(verdict.wrong) > 3 else ""
    return (
        f"seed {verdict.seed}: {found}{more}"
        f" (replay: make simulate SEEDS=1 FIRST_SEED={verdict.seed})"
    )


def _summary(verdicts: Sequence[Verdict], seconds: float) -> str:
    failed = sum(bool(verdict.wrong) for verdict in verdicts)
    days = sum(verdict.simulated for verdict in verdicts) / 86_400
    lives = sum(verdict.lives for verdict in verdicts)
    calls = sum(verdict.calls for verdict in verdicts)
    return (
        f"{len(verdicts)} seeds, {failed} failed: {days:.0f} days, {lives} instances,"
        f" {calls} calls in {seconds:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
