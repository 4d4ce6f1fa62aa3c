//! The built `ostler serve` on a port of its own, in a directory of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::http::{Answer, Request, get};

/// Nothing here takes seconds; a test that waits this long has failed.
pub const LIMIT: Duration = Duration::from_secs(30);

pub fn until(what: &str, mut fact: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !fact() {
        assert!(begun.elapsed() < LIMIT, "never seen: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A directory with the functions and perhaps a configuration.
#[derive(Debug)]
pub struct Site {
    directory: tempfile::TempDir,
}

impl Site {
    pub fn new() -> Site {
        let directory = tempfile::tempdir().expect("a directory");
        let functions = include_str!("functions.py");
        std::fs::write(directory.path().join("work.py"), functions).expect("written");
        Site { directory }
    }

    /// A site whose pool `work` has these settings.
    pub fn configured(server: &str, pool: &str) -> Site {
        let site = Site::new();
        let text = format!(
            "version = 1\n[server]\n{server}\n[pools.work]\npython = \"work.py\"\nsize = 1\n{pool}\n"
        );
        std::fs::write(site.path().join("ostler.toml"), text).expect("written");
        site
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn socket(&self) -> PathBuf {
        self.path().join(".ostler/ostler.sock")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
        command.args(args).current_dir(self.path());
        command.env_remove("OSTLER_CONFIG").env_remove("OSTLER_LOG").stdin(Stdio::null());
        command
    }

    /// Runs a command to its end: code, stdout, stderr.
    pub fn run(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.command(args).output().expect("the command runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
    }

    /// A site with several pools, each a table of the configuration.
    pub fn with_pools(pools: &str) -> Site {
        let site = Site::new();
        std::fs::write(site.path().join("ostler.toml"), format!("version = 1\n{pools}"))
            .expect("written");
        site
    }

    /// Serves the configuration if there is one, else the file of functions with one worker.
    pub fn serve(self) -> Server {
        let command = self.serve_command();
        self.serve_by(command)
    }

    pub fn serve_command(&self) -> Command {
        let configured = self.path().join("ostler.toml").exists();
        let what: &[&str] = if configured { &[] } else { &["work.py", "--size", "1"] };
        self.command(&[&["serve", "--listen", "127.0.0.1:0"], what].concat())
    }

    pub fn serve_by(self, mut command: Command) -> Server {
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the command starts");
        let log = Arc::new(Mutex::new(Vec::new()));
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let lines = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                lines.lock().expect("no panic").push(line);
            }
        });
        let mut server =
            Server { site: self, child, log, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        until("the server listens", || server.find_address());
        server
    }

    /// Where workers leave word and look for it.
    pub fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub fn give(&self, sign: &str) {
        std::fs::write(self.path().join(sign), "").expect("a sign");
    }
}

#[derive(Debug)]
pub struct Server {
    pub site: Site,
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
    pub address: SocketAddr,
}

impl Server {
    fn find_address(&mut self) -> bool {
        let log = self.log();
        assert_eq!(self.child.try_wait().expect("waited for"), None, "it ended: {log:?}");
        let found = log.iter().find_map(|line| line.split("listening on http://").nth(1));
        if let Some(address) = found {
            self.address = address.trim().parse().expect("an address");
        }
        found.is_some()
    }

    pub fn log(&self) -> Vec<String> {
        self.log.lock().expect("no panic").clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn ask(&self, request: &Request) -> Answer {
        request.send(self.address).answer()
    }

    pub fn pool(&self) -> Value {
        self.ask(&get("/api/pools/work")).json()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it is there until it is waited for");
    }

    /// How it ended, once it has.
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the server ends", || {
            status = self.child.try_wait().expect("waited for");
            status.is_some()
        });
        status.expect("just seen")
    }

    /// The server's descendants, all of them.
    pub fn family(&self) -> Vec<Relative> {
        let mut all = Vec::new();
        let mut parents = vec![self.child.id()];
        while let Some(parent) = parents.pop() {
            let children = Relative::all().into_iter().filter(|child| child.parent == parent);
            for child in children {
                parents.push(child.pid);
                all.push(child);
            }
        }
        all
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let family = self.family();
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A worker that is just dying may still write into the directory that goes next.
        let limit = Instant::now() + Duration::from_secs(5);
        while family.iter().any(Relative::lives) && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A process, told apart from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relative {
    pub pid: u32,
    parent: u32,
    begun: String,
}

impl Relative {
    fn find(pid: u32) -> Option<Relative> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let alive = !matches!(fields[0], "Z" | "X");
        alive.then_some(Relative { pid, parent: fields[1].parse().ok()?, begun: fields[19].into() })
    }

    fn all() -> Vec<Relative> {
        let entries = std::fs::read_dir("/proc").expect("a proc").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(Relative::find).collect()
    }

    pub fn lives(&self) -> bool {
        Relative::find(self.pid).is_some_and(|now| now.begun == self.begun)
    }
}

pub fn all_gone(family: &[Relative]) {
    until(&format!("all of {family:?} are gone"), || !family.iter().any(Relative::lives));
}
