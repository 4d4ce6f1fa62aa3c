"""What turns one JSON object into another, as a merge patch (RFC 7396)."""

from .jsontext import dumps


def difference(old, new):
    """The least merge patch from ``old`` to ``new``.

    A merge patch cannot set null: it removes the key instead.
    """
    patch = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif type(old[key]) is dict is type(value):
            inner = difference(old[key], value)
            if inner:
                patch[key] = inner
        # By their text: to Python 1, 1.0 and True are the same.
        elif dumps(old[key]) != dumps(value):
            patch[key] = value
    return patch
