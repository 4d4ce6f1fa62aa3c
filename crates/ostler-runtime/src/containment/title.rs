//! What `ps` shows for a shim: `ostler: root shim py`, `ostler: shim py-3`.
//!
//! A shim that is forked without exec keeps its maker's arguments, so they are overwritten in
//! place. The server starts the root shim with enough room for that.

use super::sys;

pub const ROOT_PREFIX: &str = "ostler: root shim ";
pub const SHIM_PREFIX: &str = "ostler: shim ";

/// Room that the title of a worker's shim may need.
const ROOM: usize = 64;

/// An argument that holds nothing but room.
pub fn padding() -> String {
    " ".repeat(ROOM)
}

/// Where the kernel finds the arguments of this process. Looked up once, before other processes
/// are forked off and before /proc may belong to another namespace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Title {
    start: usize,
    end: usize,
}

impl Title {
    pub fn locate() -> Title {
        Title::read().unwrap_or_default()
    }

    fn read() -> Option<Title> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // Fields 48 and 49; the first after the name in brackets is field 3.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(48 - 3);
        Some(Title { start: fields.next()?.parse().ok()?, end: fields.next()?.parse().ok()? })
    }

    /// Cut to the room there is; an unknown place shows the old title.
    pub fn show(&self, prefix: &str, name: &[u8]) {
        let mut title = [0; 192];
        let (head, tail) = title.split_at_mut(prefix.len());
        head.copy_from_slice(prefix.as_bytes());
        let length = name.len().min(tail.len());
        tail[..length].copy_from_slice(&name[..length]);
        sys::overwrite_arguments(self.start, self.end, &title[..prefix.len() + length]);
    }
}
