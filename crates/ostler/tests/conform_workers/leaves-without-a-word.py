"""Exits without an acknowledgement."""
import sys
from base import Worker

class Vice(Worker):
    def leave(self):
        sys.exit(0)

Vice().run()
