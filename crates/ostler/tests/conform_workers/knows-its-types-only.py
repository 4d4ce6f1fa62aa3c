"""Fails at a message of a type that it does not know."""
from base import Worker

class Vice(Worker):
    def on_line(self, line):
        if b'"x_conform"' in line:
            raise KeyError("x_conform")
        super().on_line(line)

Vice().run()
