//! A pool described step by step, for programs that embed one.

use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ostler_core::{Affinity, Evict, Keyed, Settings, Strategy};
use ostler_proto::Body;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::directory::{Directory, HostCall, HostError};
use crate::events::EventLog;
use crate::failure::{CallError, Refused};
use crate::pool::{Pool, PoolSpec, StartError};
use crate::profile::Profile;
use crate::program::Program;
use crate::running::{Call, Running};
use crate::session::KeyedBy;

/// Begins with [`Pool::python`] or [`Pool::command`] and ends with [`PoolBuilder::start`].
#[derive(Debug, Clone)]
#[must_use = "nothing runs before `start`"]
pub struct PoolBuilder {
    spec: PoolSpec,
}

impl Pool {
    /// A pool of a Python file's functions. The SDK comes with this library.
    pub fn python(name: impl Into<String>, file: impl Into<PathBuf>) -> PoolBuilder {
        let program = Program::Python { file: file.into(), interpreter: "python3".to_owned() };
        PoolBuilder { spec: PoolSpec::new(name, program, Settings::default()) }
    }

    /// A pool of a program that speaks the worker protocol.
    pub fn command<A>(name: impl Into<String>, argv: impl IntoIterator<Item = A>) -> PoolBuilder
    where
        A: Into<OsString>,
    {
        let program = Program::Command { argv: argv.into_iter().map(Into::into).collect() };
        PoolBuilder { spec: PoolSpec::new(name, program, Settings::default()) }
    }

    /// Calls a function and reads its result. An object is keyword arguments, a list positional
    /// ones, any other value the one argument.
    ///
    /// # Errors
    /// What the call ended in; a result that is not a `T` is a failure too.
    pub async fn invoke<T: DeserializeOwned>(
        &self,
        function: &str,
        arguments: &impl Serialize,
    ) -> Result<T, CallError> {
        let answered = self.call(Call::with(function, arguments)?).result().await?;
        serde_json::from_slice(&answered.body.to_json())
            .map_err(|error| crate::failure::Failure::unexpected(&error).into())
    }

    /// Calls a function and takes what it yields as it comes.
    ///
    /// # Errors
    /// If the arguments cannot be written as JSON.
    pub fn stream(&self, function: &str, arguments: &impl Serialize) -> Result<Running, CallError> {
        Ok(self.call(Call { stream: true, ..Call::with(function, arguments)? }))
    }
}

impl Call {
    /// A call with arguments that are written as JSON. `&()` is no arguments; one that is null is
    /// a list of it.
    ///
    /// # Errors
    /// If they cannot be.
    pub fn with(function: &str, arguments: &impl Serialize) -> Result<Call, CallError> {
        let body = serde_json::to_vec(arguments)
            .map_err(|error| Refused::Unsendable { why: error.to_string() })?;
        let body = if body == b"null" { Body::default() } else { Body::json(body) };
        Ok(Call { function: function.to_owned(), body, ..Call::default() })
    }
}

impl PoolBuilder {
    /// How many workers there are.
    pub fn size(mut self, workers: u32) -> Self {
        let defaults = Settings::of_size(workers);
        let settings = &mut self.spec.settings;
        (settings.min, settings.max) = (workers, workers);
        (settings.start_batch, settings.restart_max) = (defaults.start_batch, defaults.restart_max);
        self
    }

    /// Between how many workers it keeps. More come when requests wait, and go when they idle.
    pub fn scale(self, min: u32, max: u32) -> Self {
        let mut scaled = self.size(max);
        scaled.spec.settings.min = min;
        scaled
    }

    /// How much sessions insist on their processes, unless a call says so itself.
    pub fn affinity(mut self, affinity: Affinity) -> Self {
        self.spec.affinity = affinity;
        self
    }

    /// Each session, or each workspace, has a worker of its own, made on demand, at most `max`.
    pub fn keyed_by(mut self, key: KeyedBy, max: u32) -> Self {
        self = self.scale(0, max);
        let keyed = Keyed { evict: Evict::Lru, evict_min_age: Duration::ZERO };
        self.spec.settings.keyed = Some(keyed);
        self.spec.key = Some(key);
        if key == KeyedBy::Session {
            self.spec.affinity = Affinity::StrictQueue;
        }
        self
    }

    pub fn interpreter(mut self, interpreter: impl Into<String>) -> Self {
        if let Program::Python { interpreter: known, .. } = &mut self.spec.program {
            *known = interpreter.into();
        }
        self
    }

    /// How each worker runs its handlers, and how many at a time.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.spec.processes.profile = profile;
        self
    }

    pub fn env(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.spec.processes.env.push((key.into(), value.into()));
        self
    }

    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.spec.settings.strategy = strategy;
        self
    }

    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.spec.request_timeout = timeout;
        self
    }

    /// Requests that may wait; beyond that they are refused.
    pub fn queue_max(mut self, requests: u32) -> Self {
        self.spec.settings.queue_max = requests;
        self
    }

    /// Offers a function of this program to the pool's workers: `ostler.call("host", name, …)`.
    pub fn host_function<F, A>(self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(HostCall) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Body, HostError>> + Send + 'static,
    {
        self.spec.directory.offer(name, function);
        self
    }

    /// Pools with the same directory can call each other.
    pub fn directory(mut self, directory: &Directory) -> Self {
        self.spec.directory = directory.clone();
        self
    }

    /// Where its events go; a log of its own if nothing is said.
    pub fn events(mut self, log: &Arc<EventLog>) -> Self {
        self.spec.events = Arc::clone(log);
        self
    }

    /// Whatever has no step of its own.
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.spec.settings);
        self
    }

    pub fn spec(mut self, change: impl FnOnce(&mut PoolSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// Starts the pool. Calls may be made at once; they wait for the first worker.
    ///
    /// # Errors
    /// If there is no such interpreter or file, or the system does not let processes be started.
    pub async fn start(self) -> Result<Pool, StartError> {
        Pool::start(self.spec).await
    }
}
