"""The function of a pool that may be stopped, emptied and lent."""

import ostler


@ostler.function
def idle() -> None:
    pass
