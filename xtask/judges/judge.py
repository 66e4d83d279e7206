"""Decides how a judge tells what it finds: a line for each claim, `holds: CLAIM` or `fails: CLAIM: WHY`."""

import sys


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
            print(f"fails: {claim}: {' '.join(repr(error).split())}", flush=True)
    sys.exit(failed)
