//! What a process prints: drained so that it never blocks, counted, and the last of it kept to
//! explain its end.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

/// Lines kept of each process.
const KEPT_LINES: usize = 3;
/// Bytes kept of a line.
const KEPT_BYTES: usize = 200;

#[derive(Debug, Clone, Default)]
pub(super) struct Output {
    printed: Arc<Mutex<Printed>>,
}

#[derive(Debug, Default)]
struct Printed {
    lines: usize,
    last: VecDeque<String>,
}

impl Output {
    pub fn lines(&self) -> usize {
        self.printed.lock().expect("no code panics here").lines
    }

    /// The last lines as one, oldest first; empty if nothing was printed.
    pub fn last_words(&self) -> String {
        let printed = self.printed.lock().expect("no code panics here");
        Vec::from(printed.last.clone()).join(" | ")
    }

    /// Reads one pipe until all who could write to it are gone.
    pub async fn drain(self, pipe: OwnedFd) {
        let Ok(mut pipe) = pipe::Receiver::from_owned_fd(pipe) else { return };
        let mut buffer = vec![0; 16 << 10];
        let mut line = Vec::new();
        while let Ok(n @ 1..) = pipe.read(&mut buffer).await {
            for piece in buffer[..n].split_inclusive(|byte| *byte == b'\n') {
                let room = KEPT_BYTES.saturating_sub(line.len());
                line.extend_from_slice(&piece[..piece.len().min(room)]);
                if piece.ends_with(b"\n") {
                    self.note(&line);
                    line.clear();
                }
            }
        }
        if !line.is_empty() {
            self.note(&line);
        }
    }

    fn note(&self, line: &[u8]) {
        let mut printed = self.printed.lock().expect("no code panics here");
        printed.lines += 1;
        let text = String::from_utf8_lossy(line).trim().to_owned();
        if text.is_empty() {
            return;
        }
        printed.last.push_back(text);
        if printed.last.len() > KEPT_LINES {
            printed.last.pop_front();
        }
    }
}
