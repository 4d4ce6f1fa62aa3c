"""Says something before it is ready."""
from base import Worker

class Vice(Worker):
    def open_up(self):
        self.send("log", message="loading")
        super().open_up()

Vice().run()
