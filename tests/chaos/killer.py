"""Kills the server at chosen instants and starts it again at once."""

import time

# What an instant waits for comes by then, or the server is killed all the same.
PATIENCE = 5


class Killer:
    """`sent`: the moment when a client has sent something."""

    def __init__(self, server, draw, sent):
        self.server, self.draw, self.sent = server, draw, sent
        self.kills = {}

    def strike(self):
        """The next instant, a kill, and the next server on its way."""
        instant = self.draw.choice(INSTANTS)
        instant(self)
        self.server.kill()
        self.kills[instant.__name__] = self.kills.get(instant.__name__, 0) + 1
        self.server.start()

    def starting(self):
        """Before it answers, or soon after."""
        time.sleep(self.draw.uniform(0, 0.5))

    def asked(self):
        """Just after somebody asked for something: between effect and answer."""
        self.server.wait_until_it_answers()
        if self.draw.random() < 0.5:
            self.work_of(1)
        for _ in range(self.draw.randint(1, 10)):
            self.sent.wait(PATIENCE)
        time.sleep(self.draw.uniform(0, 0.005))

    def worked(self):
        """Just after a worker began or ended something."""
        self.server.wait_until_it_answers()
        self.work_of(self.draw.choice([1, self.draw.randint(1, 15_000)]))
        time.sleep(self.draw.uniform(0, 0.002))

    def whenever(self):
        self.server.wait_until_it_answers()
        time.sleep(self.draw.uniform(0, 3))

    def work_of(self, size):
        """Until workers have written so many bytes about what they do."""
        journal = self.server.journal
        target, until = journal.size() + size, time.monotonic() + PATIENCE
        while journal.size() < target and time.monotonic() < until:
            time.sleep(0.0005)


INSTANTS = [Killer.starting, Killer.asked, Killer.asked, Killer.worked, Killer.worked, Killer.whenever]
