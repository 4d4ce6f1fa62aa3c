import time

import ostler


@ostler.function
def hold():
    while True:
        time.sleep(3600)
