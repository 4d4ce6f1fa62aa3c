"""Takes no requests at a time."""
from base import Worker

class Vice(Worker):
    capacity = 0

Vice().run()
