"""Acknowledges, and exits with a code that says it failed."""
import sys
from base import Worker

class Vice(Worker):
    def leave(self):
        self.send("shutdown_ack")
        sys.exit(3)

Vice().run()
