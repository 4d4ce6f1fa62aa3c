//! What keeps processes from outliving the server on this machine.
//!
//! Plain looks at the kernel, `/proc` and `/sys`; nothing is started to find out.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::Check;

/// The bit of `CAP_SYS_ADMIN` among the capabilities.
const CAP_SYS_ADMIN: u32 = 21;

pub(super) fn containment_report() -> Vec<Check> {
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty()).is_ok();
    let subreaper = rustix::process::child_subreaper().is_ok();
    let namespaces = pid_namespaces();
    let cgroup = delegated_cgroup();
    vec![
        kernel(),
        support("pidfd", pidfd, "Linux 5.3 or newer has them"),
        support("subreaper", subreaper, "Linux 3.4 or newer has them"),
        namespaces_check(&namespaces),
        cgroup_check(&cgroup),
        level(pidfd && subreaper, cgroup.is_ok(), namespaces.is_ok()),
    ]
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

/// How a PID namespace can be made, or why not.
fn pid_namespaces() -> Result<&'static str, &'static str> {
    if !Path::new("/proc/self/ns/pid").exists() {
        return Err("the kernel has none");
    }
    if has_sys_admin() {
        return Ok("with CAP_SYS_ADMIN");
    }
    let zero = |path| read(path).as_deref() == Some("0");
    if !Path::new("/proc/self/ns/user").exists() || zero("/proc/sys/user/max_user_namespaces") {
        return Err("user namespaces are switched off");
    }
    if zero("/proc/sys/kernel/unprivileged_userns_clone") {
        return Err("user namespaces are for root only (kernel.unprivileged_userns_clone)");
    }
    if read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").as_deref() == Some("1") {
        return Err("AppArmor restricts user namespaces");
    }
    Ok("through user namespaces")
}

fn has_sys_admin() -> bool {
    let status = read("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> CAP_SYS_ADMIN & 1 == 1)
}

fn namespaces_check(namespaces: &Result<&str, &str>) -> Check {
    match namespaces {
        Ok(how) => Check::ok("PID namespaces", *how),
        Err(why) => Check::warning(
            "PID namespaces",
            *why,
            "pools with containment = \"namespace\" cannot start; the default needs none",
        ),
    }
}

/// The cgroup that this process may divide further, or why there is none.
fn delegated_cgroup() -> Result<PathBuf, &'static str> {
    let root = Path::new("/sys/fs/cgroup");
    if !root.join("cgroup.controllers").exists() {
        return Err("there is no cgroup v2 at /sys/fs/cgroup");
    }
    let own = read("/proc/self/cgroup").unwrap_or_default();
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let group = root.join(path.ok_or("this process is in no cgroup v2")?);
    let writable = |file: &Path| access(file, Access::WRITE_OK).is_ok();
    if !writable(&group) || !writable(&group.join("cgroup.procs")) {
        return Err("the cgroup is not delegated to this user");
    }
    Ok(group)
}

fn cgroup_check(cgroup: &Result<PathBuf, &str>) -> Check {
    match cgroup {
        Ok(group) => Check::ok("cgroup v2", format!("delegated: {}", group.display())),
        Err(why) => {
            Check::warning("cgroup v2", *why, "not needed; under systemd, Delegate=yes gives one")
        }
    }
}

/// The level that the default containment reaches, and what more there could be.
fn level(shims: bool, cgroup: bool, namespaces: bool) -> Check {
    let more = match namespaces {
        true => "; C3 for pools with containment = \"namespace\"",
        false => "",
    };
    match (shims, cgroup) {
        (true, true) => Check::ok("containment", format!("C1, a cgroup for C2 is there{more}")),
        (true, false) => Check::ok("containment", format!("C1{more}")),
        (false, _) => Check::warning(
            "containment",
            "C0: processes that leave their group may outlive a killed server",
            "use Linux 5.4 or newer",
        ),
    }
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
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

    #[test]
    fn the_level_claims_no_more_than_there_is() {
        assert_eq!(level(true, false, false).found, "C1");
        assert!(level(true, false, true).found.starts_with("C1; C3"));
        assert!(level(false, true, true).found.starts_with("C0"));
    }
}
