//! What a person or a program asks of the supervisor.

use ostler_core::{Action, Event, OrderId, Settings, WorkerId};

use super::{Stage, p};

impl Stage {
    pub fn order(&mut self, action: Action) -> OrderId {
        self.orders += 1;
        let order = OrderId(self.orders);
        self.feed(Event::Ordered { order, action });
        order
    }

    pub fn pause(&mut self, worker: u64) -> OrderId {
        self.order(Action::Pause { worker: WorkerId(worker), freeze: false })
    }

    pub fn resume(&mut self, worker: u64) -> OrderId {
        self.order(Action::Resume(WorkerId(worker)))
    }

    pub fn recycle(&mut self, worker: u64) -> OrderId {
        self.order(Action::Recycle(WorkerId(worker)))
    }

    pub fn complete_worker(&mut self, worker: u64) -> OrderId {
        self.order(Action::Complete(WorkerId(worker)))
    }

    pub fn terminate(&mut self, worker: u64) -> OrderId {
        self.order(Action::Terminate(WorkerId(worker)))
    }

    /// Makes a worker by order and brings it into service.
    pub fn add_dedicated(&mut self) -> u64 {
        self.order(Action::Create);
        let worker = self.pool.workers().last().expect("it was just made").id;
        self.order(Action::Start(worker));
        self.become_ready(p(worker.0, 1));
        self.forget();
        worker.0
    }

    pub fn shut_down(&mut self) {
        self.feed(Event::ShutdownRequested { now: false });
    }

    pub fn recycle_all(&mut self) -> OrderId {
        self.order(Action::RecyclePool)
    }

    pub fn pause_all(&mut self) -> OrderId {
        self.order(Action::PausePool)
    }

    pub fn resume_all(&mut self) -> OrderId {
        self.order(Action::ResumePool)
    }

    pub fn drain(&mut self) -> OrderId {
        self.order(Action::DrainPool)
    }

    pub fn scale(&mut self, min: u32, max: u32) -> OrderId {
        self.order(Action::Scale { min, max })
    }

    pub fn reload(&mut self, settings: Settings) -> OrderId {
        self.orders += 1;
        let order = OrderId(self.orders);
        self.feed(Event::ReloadOrdered { order, settings: Box::new(settings) });
        order
    }
}
