"""Takes calls and keeps them."""
from base import Worker

class Vice(Worker):
    def begin(self, query):
        pass

Vice().run()
