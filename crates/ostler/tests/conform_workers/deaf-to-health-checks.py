"""Does not know health_check."""
from base import Worker

class Vice(Worker):
    on_health_check = None

Vice().run()
