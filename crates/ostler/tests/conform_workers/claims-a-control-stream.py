"""Announces a second stream and opens none."""
from base import Worker

class Vice(Worker):
    control_stream = False
    announced = {"credit": True}

    def ready(self):
        return {**super().ready(), "control": True}

Vice().run()
