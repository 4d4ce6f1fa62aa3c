//! What a process writes to stdout and stderr: by line, the last of it kept after its death.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// Kept per process.
const KEPT_BYTES: usize = 64 << 10;
/// A longer line is cut into pieces.
const LINE_MAX: usize = 8 << 10;

#[derive(Debug, Default)]
pub struct Output {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<String>,
    bytes: usize,
}

impl Output {
    /// The last lines, oldest first.
    pub fn tail(&self, lines: usize) -> Vec<String> {
        let kept = self.kept.lock().expect("no code panics here");
        let skip = kept.lines.len().saturating_sub(lines);
        kept.lines.iter().skip(skip).cloned().collect()
    }

    pub fn note(&self, line: &str) {
        let mut kept = self.kept.lock().expect("no code panics here");
        kept.bytes += line.len() + 1;
        kept.lines.push_back(line.to_owned());
        while kept.bytes > KEPT_BYTES {
            let Some(oldest) = kept.lines.pop_front() else { break };
            kept.bytes -= oldest.len() + 1;
        }
    }
}

/// Reads one pipe until everybody who could write to it is gone, or the task is aborted.
pub(crate) async fn capture(pipe: OwnedFd, name: Arc<str>, stderr: bool, output: Arc<Output>) {
    let Ok(mut pipe) = pipe::Receiver::from_owned_fd(pipe) else { return };
    let mut lines = Lines::default();
    let mut buffer = vec![0; 16 << 10];
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(n) => lines.push(&buffer[..n], |line| emit(line, &name, stderr, &output)),
        }
    }
    lines.finish(|line| emit(line, &name, stderr, &output));
}

fn emit(line: &[u8], name: &str, stderr: bool, output: &Output) {
    let line = String::from_utf8_lossy(line);
    let stream = if stderr { "stderr" } else { "stdout" };
    tracing::info!(target: "ostler::worker", worker = name, stream, "{line}");
    output.note(&line);
}

#[derive(Debug, Default)]
struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8])) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            let whole = self.partial.last() == Some(&b'\n');
            if whole || self.partial.len() >= LINE_MAX {
                for part in self.partial.trim_ascii_end().chunks(LINE_MAX) {
                    line(part);
                }
                self.partial.clear();
            }
        }
    }

    fn finish(&mut self, mut line: impl FnMut(&[u8])) {
        if !self.partial.is_empty() {
            line(&self.partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_do_not_depend_on_how_bytes_were_split() {
        let text = b"one\ntwo\n\nthree";
        for cut in 0..text.len() {
            let (mut lines, mut seen) = (Lines::default(), Vec::new());
            let mut keep = |line: &[u8]| seen.push(String::from_utf8(line.to_vec()).unwrap());
            lines.push(&text[..cut], &mut keep);
            lines.push(&text[cut..], &mut keep);
            lines.finish(&mut keep);
            assert_eq!(seen, ["one", "two", "three"], "cut at {cut}");
        }
    }

    #[test]
    fn an_endless_line_is_cut_and_the_tail_is_bounded() {
        let output = Output::default();
        let mut lines = Lines::default();
        for _ in 0..100 {
            lines.push(&[b'x'; 4096], |line| output.note(&String::from_utf8_lossy(line)));
        }
        let tail = output.tail(1_000);
        assert!(tail.iter().all(|line| line.len() <= LINE_MAX));
        assert!(tail.iter().map(String::len).sum::<usize>() <= KEPT_BYTES);
    }
}
