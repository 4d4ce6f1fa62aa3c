//! From the bytes of a pipe to lines.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use ostler_proto::LogLevel;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use super::{LINE_MAX, Output, Stream};

/// Reads one pipe until everybody who could write to it is gone, or the task is aborted.
/// `current` says which request the process works on.
pub(crate) async fn capture(
    pipe: OwnedFd,
    stream: Stream,
    generation: u32,
    output: Arc<Output>,
    current: impl Fn() -> Option<Arc<str>> + Send,
) {
    let Ok(mut pipe) = pipe::Receiver::from_owned_fd(pipe) else { return };
    let emit = |line: &[u8]| {
        let text = String::from_utf8_lossy(line).into_owned();
        output.note(stream, LogLevel::Info, generation, current(), text);
    };
    let mut lines = Lines::default();
    let mut buffer = vec![0; 16 << 10];
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(n) => lines.push(&buffer[..n], &emit),
        }
    }
    lines.finish(&emit);
    output.settle();
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
    use std::io::Write as _;

    use super::*;
    use crate::output::OutputSettings;

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
    fn an_endless_line_is_cut() {
        let (mut lines, mut pieces) = (Lines::default(), Vec::new());
        for _ in 0..100 {
            lines.push(&[b'x'; 4096], |line| pieces.push(line.len()));
        }
        assert!(pieces.iter().all(|piece| *piece <= LINE_MAX));
        assert_eq!(pieces.iter().sum::<usize>(), 100 * 4096);
    }

    #[tokio::test]
    async fn a_captured_line_knows_its_stream_its_process_and_its_request() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"warming up\nhalf a line").unwrap();
        drop(writer);
        let output = Arc::new(Output::new("py-1".into(), OutputSettings::default()));
        let current = || Some(Arc::from("r_1"));
        capture(reader.into(), Stream::Stderr, 7, Arc::clone(&output), current).await;
        let lines = output.after(0);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["warming up", "half a line"]);
        assert_eq!((lines[0].stream, lines[0].generation), (Stream::Stderr, 7));
        assert_eq!(lines[0].request.as_deref(), Some("r_1"));
    }
}
