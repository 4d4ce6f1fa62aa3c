"""Reads a nonce as a number, as a language with one kind of number does."""
from base import Worker

class Vice(Worker):
    def on_ping(self, message):
        super().on_ping({"nonce": str(int(float(message["nonce"])))})

Vice().run()
