"""Takes its stream for its standard output, once."""
from base import GENERATION, Worker

class Vice(Worker):
    def open_up(self):
        super().open_up()
        if GENERATION == 1:
            self.data.sendall(b"loading the model...\n")

Vice().run()
