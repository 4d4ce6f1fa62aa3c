//! The world around one pool: processes, callers, people, a store, and a clock that only the
//! agenda moves. It plays the shell's part: it carries out commands and reports facts.
//!
//! What really happened goes to the ledger; judging is the ledger's alone.

mod callers;
mod deeds;
mod health;
mod mischief;
mod nested;
mod people;
mod process;
mod records;
mod sessions;
mod store;
mod workers;

use std::time::Duration;

use ostler_core::{
    Change, Command, Event, IdMap, LeaseId, Notice, OrderId, Phase, Pool, ProcessId, RecordId,
    RequestId, Settings, Time,
};

use crate::agenda::Agenda;
use crate::ledger::Ledger;
use crate::prng::Prng;
use crate::profile::{Ending, Mischief, Profile};
use crate::trace::{Trace, Tracing};
use crate::violation::{Verdict, require};
use process::{Process, Step};
use store::Store;

/// Deadlines that the core may leave due after it was told of them, in a row.
const WAKES_MAX: u32 = 10_000;

#[derive(Debug)]
pub struct World {
    now: Time,
    prng: Prng,
    profile: Profile,
    pool: Pool,
    agenda: Agenda<Happening>,
    processes: IdMap<ProcessId, Process>,
    store: Store,
    ledger: Ledger,
    pub trace: Trace,
    commands: Vec<Command>,
    events: u64,
    healed: bool,
    /// Nobody calls any more, except to see whether the pool serves.
    quiet: bool,
    wakes: u32,
    leases: people::Leases,
    names: sessions::Names,
    /// The kind of worker that the pool has, and the one that is to follow.
    edition: u32,
    reloading: Option<(deeds::Trial, Settings)>,
    nested: nested::Nested,
    next_request: u64,
    next_order: u64,
    next_lease: u64,
}

#[derive(Debug)]
pub(crate) enum Happening {
    /// Something reaches the core.
    Report(Event),
    Step(ProcessId, Step),
    Killed(ProcessId),
    /// A stranger who stopped it lets it go on.
    Continued(ProcessId),
    Arrival,
    CallerLeaves(RequestId),
    /// A running request calls: the process, that request, its attempt.
    InnerCall(ProcessId, RequestId, u32),
    StoreWorks {
        record: RecordId,
        change: Change,
        fate: records::Fate,
    },
    StoreIsBack,
    Mischief,
    Order,
    Deed,
    ResumePool,
    Lease,
    LeaseUse(LeaseId),
    SecondSignal,
}

/// What a run of a world came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub events: u64,
    pub requests: u64,
    pub executions: u64,
    pub spawns: u64,
    pub digest: u64,
}

impl World {
    pub fn new(seed: u64, tracing: Tracing) -> Self {
        let profile = Profile::draw(seed);
        World {
            now: Time::from_nanos(1_000_000_000),
            prng: Prng::new(seed),
            pool: Pool::new(profile.settings.clone()),
            agenda: Agenda::new(),
            processes: IdMap::default(),
            store: Store::default(),
            ledger: Ledger::new(profile.settings.clone()),
            trace: Trace::new(tracing),
            commands: Vec::new(),
            events: 0,
            healed: false,
            quiet: false,
            wakes: 0,
            leases: people::Leases::default(),
            names: sessions::Names::new(profile.state.sessions, profile.state.keys),
            edition: 1,
            reloading: None,
            nested: nested::Nested::default(),
            next_request: 1,
            next_order: 1,
            next_lease: 1,
            profile,
        }
    }

    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    pub fn tally(&self) -> Tally {
        let (requests, executions, spawns) = self.ledger.counts();
        Tally { events: self.events, requests, executions, spawns, digest: self.trace.digest() }
    }

    /// Lives through `events` events among faults, then shows that the pool mends or ends.
    pub fn run(&mut self, events: u64) -> Verdict {
        self.open()?;
        while self.events < events {
            self.advance()?;
        }
        if self.profile.people.shutdown == Ending::ShutdownFaulty {
            return self.shut_down();
        }
        self.heal()?;
        match self.profile.people.shutdown {
            Ending::Stay => Ok(()),
            _ => self.shut_down(),
        }
    }

    fn open(&mut self) -> Verdict {
        self.plan_arrival();
        self.plan_order();
        self.plan_lease();
        self.plan_deed();
        self.plan_mischief();
        self.deliver(Event::PoolStarted)
    }

    /// Faults stop; what is broken must mend within a bound that the settings give.
    fn heal(&mut self) -> Verdict {
        self.healed = true;
        self.profile.heal();
        self.trace.line(self.now, "!", &"healing");
        self.cure_processes();
        self.store.out = false;
        self.relax()?;
        self.run_for(self.ledger.mending_bound())?;
        self.resume_paused()?;
        self.run_for(self.ledger.mending_bound())?;
        self.quiet = true;
        self.run_for(self.ledger.quiet_bound())?;
        self.ledger.expect_whole(self.now)?;
        let asleep = self.processes.values().find(|process| process.stopped);
        require!(asleep.is_none(), "the silent are replaced", "{asleep:?}");
        self.prove_service()?;
        self.check_core()
    }

    fn shut_down(&mut self) -> Verdict {
        self.trace.line(self.now, "!", &"shutdown");
        let bound = self.ledger.stopping_bound();
        let at_once = self.prng.chance(0.2);
        if !at_once && self.prng.chance(0.3) {
            let wait = self.prng.span(Duration::from_micros(10), bound);
            self.plan_in(wait, Happening::SecondSignal);
        }
        self.profile.heal_store();
        self.store.out = false;
        self.profile.faults.mischief.retain(|mischief| *mischief != Mischief::Stall);
        self.deliver(Event::ShutdownRequested { now: at_once })?;
        self.run_for(bound)?;
        self.ledger.expect_stopped(self.now)?;
        self.check_core()
    }

    fn run_for(&mut self, span: Duration) -> Verdict {
        let end = self.now.after(span);
        while self.next_at().is_some_and(|at| at <= end) {
            self.advance()?;
        }
        self.now = self.now.max(end);
        Ok(())
    }

    fn next_at(&self) -> Option<Time> {
        match (self.agenda.next_at(), self.pool.next_deadline()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The next thing happens. After a stall much is due at once, and any of the two queues of
    /// a real event loop may be read first.
    fn advance(&mut self) -> Verdict {
        let (planned, deadline) = (self.agenda.next_at(), self.pool.next_deadline());
        let wake = match (planned, deadline) {
            (None, None) => {
                require!(false, "the world goes on", "nothing is planned and nothing is awaited");
                return Ok(());
            }
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (Some(planned), Some(deadline)) => {
                let (planned, deadline) = (planned.max(self.now), deadline.max(self.now));
                deadline < planned || (deadline == planned && self.prng.chance(0.5))
            }
        };
        if wake {
            self.now = self.now.max(deadline.expect("one of the two was chosen"));
            return self.wake();
        }
        self.now = self.now.max(planned.expect("one of the two was chosen"));
        let happening = self.agenda.take().expect("it was seen a moment ago");
        self.happen(happening)
    }

    fn wake(&mut self) -> Verdict {
        self.deliver(Event::DeadlineReached)?;
        let due = self.pool.next_deadline().is_some_and(|at| at <= self.now);
        self.wakes = if due { self.wakes + 1 } else { 0 };
        require!(
            self.wakes < WAKES_MAX,
            "a deadline passes",
            "still due after {WAKES_MAX} wakes at {:?}",
            self.now
        );
        Ok(())
    }

    fn happen(&mut self, happening: Happening) -> Verdict {
        match happening {
            Happening::Report(event) => {
                if let Event::ProcessCleared { process } = event {
                    self.processes.remove(&process);
                }
                self.deliver(event)
            }
            Happening::Step(process, step) => self.step(process, step),
            Happening::Killed(process) => self.die(process, ostler_core::Exit::Signal(9)),
            Happening::Continued(process) => {
                self.set_stopped(process, false);
                Ok(())
            }
            Happening::Arrival => self.arrive(),
            Happening::CallerLeaves(request) => self.deliver(Event::CancelRequested { request }),
            Happening::InnerCall(process, outer, attempt) => {
                self.take_inner_call(process, outer, attempt)
            }
            Happening::StoreWorks { record, change, fate } => self.work(record, change, fate),
            Happening::StoreIsBack => {
                self.store.out = false;
                Ok(())
            }
            Happening::Mischief => self.make_mischief(),
            Happening::Order => self.give_order(),
            Happening::Deed => self.do_deed(),
            Happening::ResumePool => self.resume_pool(),
            Happening::Lease => self.ask_lease(),
            Happening::LeaseUse(lease) => self.use_lease(lease),
            Happening::SecondSignal => self.deliver(Event::ShutdownRequested { now: true }),
        }
    }

    /// One event goes in; every command that comes out is judged, then carried out.
    fn deliver(&mut self, event: Event) -> Verdict {
        self.events += 1;
        self.trace.line(self.now, "→", &event);
        self.ledger.hear(self.now, &event);
        let mut commands = std::mem::take(&mut self.commands);
        self.pool.handle(self.now, event, &mut commands);
        for command in commands.drain(..) {
            self.trace.line(self.now, "    ←", &command);
            self.ledger.judge(self.now, &command)?;
            self.obey(command)?;
        }
        self.commands = commands;
        self.ledger.settle(self.now, self.pool.next_deadline())?;
        if self.events.is_multiple_of(256) { self.check_core() } else { Ok(()) }
    }

    fn check_core(&self) -> Verdict {
        self.ledger.check_counters(&self.pool.view(self.now).counters)?;
        let checked = self.pool.check();
        require!(checked.is_ok(), "the core's indexes agree", "{checked:?}");
        Ok(())
    }

    fn obey(&mut self, command: Command) -> Verdict {
        match command {
            Command::Spawn { process, edition } if edition > self.edition => {
                self.spawn_trial(process);
            }
            Command::Spawn { process, .. } => self.spawn(process),
            Command::Assign { request, attempt, process, .. } => {
                self.assign(process, request, attempt);
            }
            Command::Cancel { request, attempt, process, withdraw } => {
                self.reach(process, Step::SeeCancel { request, attempt, withdraw });
            }
            Command::Ping { process } => self.reach(process, Step::SeePing),
            Command::CheckHealth { process } => self.reach(process, Step::SeeCheck),
            Command::AskShutdown { process } => self.reach(process, Step::SeeShutdown),
            Command::Terminate { process } => self.reach(process, Step::SeeTerm),
            Command::Kill { process } => {
                let latency = self.latency();
                self.plan_in(latency, Happening::Killed(process));
            }
            Command::Freeze { process } => self.set_frozen(process, true),
            Command::Thaw { process } => self.set_frozen(process, false),
            Command::Record { record, change } => self.record(record, change),
            Command::Grant { lease, places } => self.begin_lease(lease, places.len()),
            Command::EndLease { lease, .. } => self.leases.end(lease),
            Command::Resolve { request, .. } | Command::Refuse { request, .. } => {
                self.end_call(request);
            }
            Command::Notify(Notice::PhaseChanged { process, to: Phase::Degraded, .. }) => {
                self.look_after(process);
            }
            Command::SaveSession { process, session } => {
                self.reach(process, Step::SeeSave { session });
            }
            Command::Notify(
                ref notice @ (Notice::Reloaded { .. } | Notice::ReloadFailed { .. }),
            ) => {
                self.note_reload(notice);
            }
            // Whoever has room reads its stream by itself.
            Command::Begin { .. }
            | Command::RefuseLease { .. }
            | Command::LosePlace { .. }
            | Command::Reply { .. }
            | Command::Notify(_)
            | Command::Stopped => {}
        }
        Ok(())
    }

    fn plan_in(&mut self, wait: Duration, happening: Happening) {
        self.agenda.plan(self.now.after(wait), happening);
    }

    /// The way between the core and anything outside.
    fn latency(&mut self) -> Duration {
        Duration::from_nanos(1_000 + self.prng.below(100_000))
    }

    fn order_id(&mut self) -> OrderId {
        self.next_order += 1;
        OrderId(self.next_order)
    }
}
