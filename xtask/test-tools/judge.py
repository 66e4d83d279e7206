"""Decides how a judge tells what it finds: a line for each claim, `holds: CLAIM` or `fails: CLAIM: WHY`."""

import sys
import traceback


def judge(claims):
    """Looks at each claim, a pair of what it says and what raises if it is wrong; then the program ends.

    A check may return what it has measured, which is told with its claim.
    """
    failed = False
    for claim, check in claims:
        try:
            measured = check()
            print(f"holds: {claim} ({measured})" if measured else f"holds: {claim}", flush=True)
        except Exception as error:
            failed = True
            where = ", ".join(f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[1:])
            print(f"fails: {claim}: {' '.join(repr(error).split())} at {where}", flush=True)
    sys.exit(failed)
