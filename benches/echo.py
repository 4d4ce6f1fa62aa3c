import ostler


@ostler.function
def echo(data: bytes) -> bytes:
    return data
