"""A module that cannot be preloaded: it leaves a thread running."""

import threading

threading.Thread(target=threading.Event().wait, daemon=True).start()
