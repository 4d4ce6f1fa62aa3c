//! Everything a core was told and everything it ordered, to be replayed: the same events at the
//! same times must give the same commands.

use ostler_core::{Command, Event, Pool, Settings, Time};

#[derive(Debug)]
pub struct Trace {
    settings: Settings,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    now: Time,
    event: Event,
    commands: Vec<Command>,
}

impl Trace {
    pub(crate) fn of(settings: Settings) -> Self {
        Trace { settings, steps: Vec::new() }
    }

    pub(crate) fn note(&mut self, now: Time, event: Event, commands: &[Command]) {
        self.steps.push(Step { now, event, commands: commands.to_vec() });
    }

    pub fn len(&self) -> usize {
        self.steps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Runs the events through a fresh core.
    ///
    /// # Errors
    /// Names the first step that came out differently.
    pub fn replay(&self) -> Result<(), String> {
        let mut pool = Pool::new(self.settings.clone());
        for (index, step) in self.steps.iter().enumerate() {
            let mut commands = Vec::new();
            pool.handle(step.now, step.event.clone(), &mut commands);
            if commands != step.commands {
                let (event, then) = (&step.event, &step.commands);
                return Err(format!("step {index}: {event:?} gave {then:?}, now {commands:?}"));
            }
            pool.check()?;
        }
        Ok(())
    }
}
