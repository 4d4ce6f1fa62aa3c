"""What a forked worker of the trials runs: the hostile program."""

import os
import sys


def run():
    os.execv(os.environ["RIG"], [os.environ["RIG"], *sys.argv])
