"""Comes up once the file that STARTS_WHEN names exists."""

import os
import time

import ostler


@ostler.on_start
def wait():
    while not os.path.exists(os.environ["STARTS_WHEN"]):
        time.sleep(0.002)


@ostler.function
def echo(value=None):
    return value


@ostler.function
def where():
    return os.getpid()
