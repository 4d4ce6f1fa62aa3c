"""Waits for ever when the server is gone."""
import signal
from base import Worker

class Vice(Worker):
    control_stream = False
    announced = {"credit": True}

    def on_end(self, stream):
        signal.pause()

Vice().run()
