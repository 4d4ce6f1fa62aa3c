"""Tells of the cancel, and then of the end of the call."""
from base import Worker

class Vice(Worker):
    announced = {"credit": True}

    def on_cancel(self, message):
        query = self.running.get(message["requestId"], {})
        super().on_cancel(message)
        if query.get("function") == "slow":
            self.send("complete", requestId=message["requestId"], result=None)

Vice().run()
