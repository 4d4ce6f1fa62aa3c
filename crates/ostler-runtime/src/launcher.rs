//! How this pool's processes are made: their command, environment and names, and the root shim
//! they hang from. It also keeps what workers said of their functions.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use ostler_core::ProcessId;
use ostler_proto::{FunctionSpec, Limits, Ready, env};

use crate::containment::{Containment, Level, RootOptions, RootShim, SpawnError, SpawnSpec};
use crate::output::OutputSettings;
use crate::profile::{Profile, ThreadSafety};
use crate::program::Resolved;
use crate::rendezvous::Rendezvous;

/// Of the workers that a pool begins with.
const FIRST_EDITION: u32 = 1;

#[derive(Debug)]
pub(crate) struct Launcher {
    pool: String,
    output: OutputSettings,
    containment: Containment,
    /// The kinds of workers by their editions: the current one, and one that is being tried.
    recipes: Mutex<BTreeMap<u32, Arc<Recipe>>>,
    /// `None` once the pool has stopped.
    root: tokio::sync::Mutex<Option<Arc<RootShim>>>,
    level: Mutex<Level>,
    functions: Mutex<Option<Arc<[FunctionSpec]>>>,
    last_failure: Mutex<Option<String>>,
    /// Processes to be killed as soon as there is something to kill.
    condemned: Mutex<HashSet<ProcessId>>,
    /// Processes that were not ready in time.
    late: Mutex<HashSet<ProcessId>>,
}

/// How one kind of worker is made.
#[derive(Debug)]
pub(crate) struct Recipe {
    argv: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    cwd: Option<PathBuf>,
    named_socket: bool,
    profile: Profile,
    thread_safety: ThreadSafety,
    pub limits: Limits,
    pub max_result: u64,
}

impl Recipe {
    pub fn new(
        program: Resolved,
        settings: &ProcessSettings,
        limits: Limits,
        max_result: u64,
    ) -> Self {
        let Resolved { argv, env: inherited } = program;
        let defaults = settings.profile.defaults().iter();
        let mut env: BTreeMap<OsString, OsString> =
            defaults.map(|(key, value)| (key.into(), value.into())).collect();
        env.extend(inherited);
        env.extend(settings.env.iter().map(|(key, value)| (key.into(), value.into())));
        Recipe {
            argv,
            env,
            cwd: settings.cwd.clone(),
            named_socket: settings.named_socket,
            profile: settings.profile,
            thread_safety: settings.thread_safety,
            limits,
            max_result,
        }
    }

    fn protocol_env(
        &self,
        pool: &str,
        process: ProcessId,
        name: &str,
        rendezvous: Option<&Rendezvous>,
    ) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            (env::PROTOCOL, ostler_proto::PROTOCOL_VERSION.to_string()),
            (env::WIRES, "binary,ndjson".to_owned()),
            (env::POOL, pool.to_owned()),
            (env::WORKER, name.to_owned()),
            (env::GENERATION, process.generation.to_string()),
            (env::MAX_FRAME, self.limits.max_frame.to_string()),
            (env::MAX_LINE, self.limits.max_line.to_string()),
        ];
        variables.extend(self.profile.environment(self.thread_safety));
        match rendezvous {
            None => variables.extend([(env::FD, "3".to_owned()), (env::CTL_FD, "4".to_owned())]),
            Some(rendezvous) => variables.extend([
                (env::SOCKET, rendezvous.path().display().to_string()),
                (env::TOKEN, rendezvous.token().to_owned()),
            ]),
        }
        variables
    }
}

/// The parts of a pool's description that concern its processes.
#[derive(Debug, Clone, Default)]
pub struct ProcessSettings {
    pub env: Vec<(String, String)>,
    pub cwd: Option<PathBuf>,
    /// The worker connects to a socket by its name instead of inheriting one.
    pub named_socket: bool,
    pub containment: Containment,
    pub profile: Profile,
    pub thread_safety: ThreadSafety,
    pub output: OutputSettings,
}

impl Launcher {
    pub async fn new(
        pool: String,
        recipe: Recipe,
        settings: &ProcessSettings,
    ) -> std::io::Result<Self> {
        let root = start_root(&pool, settings.containment).await?;
        Ok(Launcher {
            level: Mutex::new(root.level().clone()),
            root: tokio::sync::Mutex::new(Some(root)),
            pool,
            output: settings.output,
            containment: settings.containment,
            recipes: Mutex::new(BTreeMap::from([(FIRST_EDITION, Arc::new(recipe))])),
            functions: Mutex::default(),
            last_failure: Mutex::default(),
            condemned: Mutex::default(),
            late: Mutex::default(),
        })
    }

    pub fn containment(&self) -> Containment {
        self.containment
    }

    fn recipes(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Recipe>>> {
        self.recipes.lock().expect("no code panics here")
    }

    /// How workers of an edition are made; of the newest that is known, if it is gone.
    pub fn recipe(&self, edition: u32) -> Arc<Recipe> {
        let recipes = self.recipes();
        let known = recipes.get(&edition).or_else(|| recipes.values().next_back());
        Arc::clone(known.expect("there is always one"))
    }

    /// The next edition, to be tried.
    pub fn propose(&self, edition: u32, recipe: Recipe) {
        self.recipes().insert(edition, Arc::new(recipe));
    }

    /// A trial is over: only this edition is left.
    pub fn settle_on(&self, edition: u32) {
        self.recipes().retain(|known, _| *known == edition);
    }

    pub fn output(&self) -> OutputSettings {
        self.output
    }

    pub fn pool(&self) -> &str {
        &self.pool
    }

    pub fn level(&self) -> Level {
        self.level.lock().expect("no code panics here").clone()
    }

    /// What the workers run, for people: arguments may be secrets.
    pub fn program(&self) -> String {
        let recipe = self.recipes().values().next_back().cloned().expect("there is always one");
        let argv = &recipe.argv;
        let script = argv.iter().rev().find(|argument| {
            std::path::Path::new(argument).extension().is_some_and(|kind| kind == "py")
        });
        let shown = script.or(argv.first());
        shown.map_or_else(String::new, |program| program.to_string_lossy().into_owned())
    }

    pub fn name(&self, process: ProcessId) -> String {
        format!("{}-{}", self.pool, process.worker.0)
    }

    pub fn prepare(
        &self,
        recipe: &Recipe,
        process: ProcessId,
    ) -> Result<(SpawnSpec, Option<Rendezvous>), SpawnError> {
        let name = self.name(process);
        let rendezvous = match recipe.named_socket {
            false => None,
            true => Some(Rendezvous::open(&name).map_err(|source| SpawnError::System {
                what: "cannot open the worker's socket",
                source,
            })?),
        };
        let mut env = recipe.env.clone();
        for (key, value) in recipe.protocol_env(&self.pool, process, &name, rendezvous.as_ref()) {
            env.insert(key.into(), value.into());
        }
        let spec = SpawnSpec {
            env: env.into_iter().collect(),
            cwd: recipe.cwd.clone(),
            data: rendezvous.is_none(),
            control: rendezvous.is_none(),
            ..SpawnSpec::new(name, recipe.argv.clone())
        };
        Ok((spec, rendezvous))
    }

    /// The root shim, a new one if the last was killed.
    pub async fn root(&self) -> Result<Arc<RootShim>, SpawnError> {
        let mut root = self.root.lock().await;
        let current = root.as_mut().ok_or(SpawnError::RootShimLost)?;
        if current.is_lost() {
            tracing::error!(pool = self.pool, "the root shim was killed; starting another one");
            *current = start_root(&self.pool, self.containment).await.map_err(|source| {
                SpawnError::System { what: "cannot start the root shim", source }
            })?;
            *self.level.lock().expect("no code panics here") = current.level().clone();
        }
        Ok(Arc::clone(current))
    }

    /// Ends the root shim and waits for its end.
    pub async fn close(&self) {
        let root = self.root.lock().await.take();
        if let Some(root) = root.and_then(Arc::into_inner) {
            root.close().await;
        }
    }

    pub fn learn(&self, ready: &Ready) {
        let mut functions = self.functions.lock().expect("no code panics here");
        if functions.as_deref() != Some(&ready.functions) {
            *functions = Some(ready.functions.as_slice().into());
        }
    }

    /// What the last ready worker announced; `None` before it, empty if workers announce nothing.
    pub fn functions(&self) -> Option<Arc<[FunctionSpec]>> {
        self.functions.lock().expect("no code panics here").clone()
    }

    pub fn note_failure(&self, why: String) {
        *self.last_failure.lock().expect("no code panics here") = Some(why);
    }

    pub fn forget_failure(&self) {
        *self.last_failure.lock().expect("no code panics here") = None;
    }

    pub fn last_failure(&self) -> Option<String> {
        self.last_failure.lock().expect("no code panics here").clone()
    }

    pub fn note_late(&self, process: ProcessId) {
        self.late.lock().expect("no code panics here").insert(process);
    }

    /// Whether it was not ready in time; asked once, when it has ended.
    pub fn was_late(&self, process: ProcessId) -> bool {
        self.late.lock().expect("no code panics here").remove(&process)
    }

    /// To be killed, though it is not there yet.
    pub fn condemn(&self, process: ProcessId) {
        self.condemned.lock().expect("no code panics here").insert(process);
    }

    /// Whether it was; asked once, when it is there or is known never to come.
    pub fn is_condemned(&self, process: ProcessId) -> bool {
        self.condemned.lock().expect("no code panics here").remove(&process)
    }
}

async fn start_root(pool: &str, containment: Containment) -> std::io::Result<Arc<RootShim>> {
    let options = RootOptions { containment, ..RootOptions::new(pool)? };
    RootShim::start(options).await.map(Arc::new)
}
