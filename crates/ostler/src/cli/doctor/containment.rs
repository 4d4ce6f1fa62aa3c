//! What keeps processes from outliving the server on this machine.
//!
//! The level is not guessed from files: a root shim is started for each kind of containment, says
//! what it was granted, and is gone again.

use ostler_runtime::containment::{Containment, Level, RootOptions, RootShim, Rung};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::Check;

pub(super) async fn containment_report() -> Vec<Check> {
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty()).is_ok();
    let subreaper = rustix::process::child_subreaper().is_ok();
    vec![
        kernel(),
        support("pidfd", pidfd, "Linux 5.3 or newer has them"),
        support("subreaper", subreaper, "Linux 3.4 or newer has them"),
        default_level(probe(Containment::Shim).await),
        namespace_level(probe(Containment::Namespace).await),
    ]
}

/// What a pool of this kind would get.
async fn probe(containment: Containment) -> std::io::Result<Level> {
    let options = RootOptions { containment, ..RootOptions::new("doctor")? };
    let root = RootShim::start(options).await?;
    let level = root.level().clone();
    root.close().await;
    Ok(level)
}

fn default_level(level: std::io::Result<Level>) -> Check {
    match level {
        Ok(level) => Check::ok("containment", format!("{}: {}", level.rung, level.reason)),
        Err(error) => Check::problem(
            "containment",
            format!("a root shim does not start: {error}"),
            "pools cannot start here; check the limits on processes and open files",
        ),
    }
}

fn namespace_level(level: std::io::Result<Level>) -> Check {
    let name = "PID namespaces";
    let advice = "pools with containment = \"namespace\" get a shim per worker instead";
    match level {
        Ok(level) if level.rung == Rung::C3 => {
            Check::ok(name, format!("{}: {}", level.rung, level.reason))
        }
        Ok(level) => Check::warning(name, level.reason, advice),
        Err(error) => Check::warning(name, error.to_string(), advice),
    }
}

fn kernel() -> Check {
    let release = read("/proc/sys/kernel/osrelease");
    match release.as_deref().and_then(version) {
        Some(version) if version >= (5, 4) => Check::ok("kernel", release.unwrap_or_default()),
        Some(_) => Check::problem("kernel", release.unwrap_or_default(), "use Linux 5.4 or newer"),
        None => Check::warning("kernel", "the version is not known", "use Linux 5.4 or newer"),
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn support(name: &str, there: bool, advice: &str) -> Check {
    match there {
        true => Check::ok(name, "there"),
        false => Check::problem(name, "not there", advice),
    }
}

fn read(path: &str) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions_are_read_from_their_release() {
        assert_eq!(version("6.18.44-fc-v445"), Some((6, 18)));
        assert_eq!(version("5.4"), Some((5, 4)));
        assert_eq!(version("what"), None);
    }
}
