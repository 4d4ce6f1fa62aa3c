//! `ostler serve`: from arguments to a typed configuration, and from there to a running server.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::ServeArgs;
use super::endpoint::{config_file, current_dir};
use super::exit::{Exit, Failure};
use super::output;
use crate::config::{self, Config, Containment, Pool, Program};
use crate::daemon::Daemon;
use crate::reload::Source;
use crate::text::one_line;

pub(super) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    let here = current_dir()?;
    let config = resolve(args, &here)?;
    output::print(&plan(&config, unused(args, &here).as_deref()))?;
    let (again, root) = (args.clone(), here);
    let source: Source =
        Arc::new(move || resolve(&again, &root).map_err(|failure| failure.to_string()));
    serve(config, source, Manner { wait: args.wait, watch: args.watch })
}

/// How a server is run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Manner {
    /// Nobody is let in before every worker is ready.
    pub wait: bool,
    /// Reload when a file changes.
    pub watch: bool,
}

/// Runs the server until it is told to end.
pub(super) fn serve(config: Config, source: Source, manner: Manner) -> Result<Exit, Failure> {
    // The workers need the cores more than the server does: with a thread per core, a lone call wakes
    // a second thread that finds nothing to do.
    let threads = (config::cores() as usize / 2).max(1);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(threads).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("no runtime: {error}")))?;
    runtime.block_on(async {
        let daemon = Daemon::start(&config, source).await;
        let daemon = daemon.map_err(|error| Failure::failed(error.to_string()))?;
        if manner.wait {
            daemon.all_ready().await.map_err(|error| Failure::failed(error.to_string()))?;
        }
        daemon.run(manner.watch).await;
        Ok(Exit::Ok)
    })
}

/// The configuration that the arguments mean: a file's, or that of one Python file.
pub(super) fn resolve(args: &ServeArgs, here: &Path) -> Result<Config, Failure> {
    let mut config = match &args.file {
        Some(file) => of_file(file, here)?,
        None => of_config(args, here)?,
    };
    if let Some(listen) = args.listen {
        config.server.listen = listen;
    }
    if let Some(size) = args.size {
        let pools = config.pools.into_iter();
        config.pools = pools.map(|pool| pool.with_size(size)).collect();
    }
    Ok(config)
}

fn of_file(file: &Path, here: &Path) -> Result<Config, Failure> {
    if file.extension().is_some_and(|kind| kind == "toml") {
        return Err(Failure::usage(format!(
            "{0} is a configuration; serve it with: ostler serve --config {0}",
            file.display()
        )));
    }
    if !here.join(file).is_file() {
        return Err(Failure::usage(format!("there is no file {}", here.join(file).display())));
    }
    Ok(Config::of_python_file(file, here, config::cores()))
}

fn of_config(args: &ServeArgs, here: &Path) -> Result<Config, Failure> {
    let file = config_file(&args.config, here).ok_or_else(|| {
        Failure::usage(
            "there is nothing to serve: no ostler.toml here or above\n  \
             serve a file with: ostler serve FILE.py",
        )
    })?;
    config::load(&file).map_err(|error| Failure::usage(error.to_string()))
}

/// A configuration that is passed over because a Python file was named. Clients here still find
/// the server by it, so the user should know.
fn unused(args: &ServeArgs, here: &Path) -> Option<PathBuf> {
    args.file.as_ref().and_then(|_| config_file(&args.config, here))
}

/// What is about to be started, in a few lines.
fn plan(config: &Config, unused: Option<&Path>) -> String {
    let mut out = format!("ostler {}\n", env!("CARGO_PKG_VERSION"));
    if let Some(file) = &config.file {
        line(&mut out, "config", &file.display().to_string());
    }
    line(&mut out, "listen", &format!("http://{}", config.server.listen));
    line(&mut out, "socket", &config.server.socket.display().to_string());
    for pool in &config.pools {
        line(&mut out, "pool", &describe(pool));
    }
    if let Some(file) = unused {
        line(&mut out, "note", &format!("{} is not used, a file was named", file.display()));
    }
    out
}

fn line(out: &mut String, label: &str, text: &str) {
    let _ = writeln!(out, "  {label:6}  {}", one_line(text));
}

/// Arguments of a command are not shown: they may be secrets.
fn describe(pool: &Pool) -> String {
    let program = match &pool.program {
        Program::Python { file, interpreter } => {
            format!("{} {}", interpreter.display(), file.display())
        }
        Program::Command { argv } => argv[0].clone(),
    };
    let workers = match (pool.scaling.min, pool.size) {
        (1, 1) => "1 worker".to_owned(),
        (min, max) if min == max => format!("{max} workers"),
        (min, max) => format!("{min} to {max} workers"),
    };
    let containment = match pool.containment {
        Containment::Shim => "",
        Containment::Namespace => ", each in a PID namespace",
    };
    format!("{}: {workers} of {program}{containment}", pool.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    use super::super::args::{Args, Command};

    fn serve_args(args: &[&str]) -> ServeArgs {
        let parsed = Args::try_parse_from([&["ostler", "serve"], args].concat());
        match parsed.expect("valid arguments").command {
            Command::Serve(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_and_its_options_become_a_plan() {
        let here = tempfile::tempdir().expect("a directory");
        let root = here.path();
        std::fs::write(root.join("hello.py"), "").expect("written");
        std::fs::write(root.join("ostler.toml"), "").expect("written");
        let args = serve_args(&["hello.py", "--size", "3", "--listen", "[::1]:7"]);
        let config = resolve(&args, root).expect("a configuration");
        let expected = format!(
            "ostler {version}\n  \
               listen  http://[::1]:7\n  \
               socket  {root}/.ostler/ostler.sock\n  \
               pool    hello: 3 workers of python3 {root}/hello.py\n  \
               note    {root}/ostler.toml is not used, a file was named\n",
            version = env!("CARGO_PKG_VERSION"),
            root = root.display(),
        );
        assert_eq!(plan(&config, Some(&root.join("ostler.toml"))), expected);
    }

    #[test]
    fn a_configuration_becomes_a_plan_that_hides_arguments() {
        let here = tempfile::tempdir().expect("a directory");
        let file = here.path().join("ostler.toml");
        let text = "version = 1\n[pools.x]\ncommand = [\"run\", \"--token=hunter2\"]\n\
                    size = 1\ncontainment = \"namespace\"\n";
        std::fs::write(&file, text).expect("written");
        let args = serve_args(&["--config", &file.to_string_lossy()]);
        let shown = plan(&resolve(&args, Path::new("/")).expect("a configuration"), None);
        assert!(shown.contains("pool    x: 1 worker of run, each in a PID namespace\n"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
