"""Decides how a judge tells what it finds: a line for each claim, `holds: CLAIM` or `fails: CLAIM: WHY`."""

import sys


def judge(claims):
    """Looks at each claim, a pair of what it says and what raises if it is wrong; then the program ends."""
    failed = False
    for claim, check in claims:
        try:
            check()
            print(f"holds: {claim}")
        except Exception as error:
            failed = True
            print(f"fails: {claim}: {' '.join(repr(error).split())}")
    sys.exit(failed)
