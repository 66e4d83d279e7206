"""Runs checks and prints a line for each: `holds: CLAIM` or `fails: CLAIM: WHY`."""

import sys
import traceback


def run_checks(checks):
    """Runs each check, a claim and a function that raises on failure; then the program ends.

    A function may return a measurement, which is printed with its claim.
    """
    failed = False
    for claim, check in checks:
        try:
            measured = check()
            print(f"holds: {claim} ({measured})" if measured else f"holds: {claim}", flush=True)
        except Exception as error:
            failed = True
            where = ", ".join(f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[1:])
            print(f"fails: {claim}: {' '.join(repr(error).split())} at {where}", flush=True)
    sys.exit(failed)
