//! Files as they come: on disk, for clients, and full of garbage.

use super::*;

#[test]
fn a_file_on_disk_is_the_root_of_its_paths() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("site.toml");
    std::fs::write(&file, pool_file("")).expect("written");
    let missing = load(&file).expect_err("w.py is missing").to_string();
    assert!(missing.contains("no such file"), "{missing}");
    std::fs::write(directory.path().join("w.py"), "").expect("written");
    let config = load(&file).expect("valid");
    assert_eq!(config.root, directory.path());
    assert_eq!(config.file.as_deref(), Some(file.as_path()));
}

#[test]
fn a_file_that_cannot_be_text_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("x.toml");
    assert!(matches!(load(&file), Err(LoadError::Unreadable { .. })));
    std::fs::write(&file, b"ab\xff").expect("written");
    assert!(matches!(load(&file), Err(LoadError::NotText { at: 2, .. })));
    std::fs::write(&file, vec![b'#'; 1 + FILE_MAX as usize]).expect("written");
    assert!(matches!(load(&file), Err(LoadError::TooLarge { .. })));
    let named = load(&file).expect_err("too large").to_string();
    assert!(named.contains("x.toml"), "{named}");
}

#[test]
fn a_client_reads_the_server_whatever_is_wrong_with_the_pools() {
    let around =
        Surroundings { root: Path::new("/srv"), cores: 4, variable: &variable, exists: &|_| false };
    let text = "[server]\nsocket = \"s\"\n[pools.Nope]\nwhat = 1\n";
    let server = document::read_server(&Source::new("o", text), &around).expect("a server");
    assert_eq!(server.socket, Path::new("/srv/s"));
    let broken = Source::new("o", "[server]\nsocket = 3\n");
    assert!(document::read_server(&broken, &around).is_err());
}

/// A small generator with a fixed seed: the same inputs on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

#[test]
fn no_input_makes_the_reader_panic() {
    let valid_text = "version = 1\n[server]\nlisten = \"127.0.0.1:1\"\n[pools.py]\npython = \"ü${PORT:-x}\"\n\
        size = 0x10\nenv = { A = \"b\" }\nqueue_timeout = 1e3\ncommand = [\"a\", 'b']\nmax_body = \"1.5MiB\"\n\
        profile = \"async\"\ncheck = { enabled = \"${X:-true}\" }\nttl = 5\nttl_jitter = 1e-1\n\
        key = \"session\"\nmax_memory = \"1GiB\"\n[pools.py.heartbeat]\nmisses = 2\n\
        [sessions]\nmemory_max = \"1GiB\"\n[store]\npath = \"x\"\n";
    let words = [
        "[pools.",
        "]",
        "[[",
        "=",
        "\"",
        "'''",
        "${",
        "}",
        ":-",
        "\n",
        "\t",
        "\u{0}",
        "é",
        "\u{1b}",
        "9e999",
        "-",
        "_",
        "0x",
        "inf",
        "version",
        "pools",
        "server",
        "size",
        "heartbeat",
        "check",
        "{",
        ".",
        "#",
        "1979-05-27",
        "\\u00",
    ];
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..4_000 {
        let mut bytes = valid_text.as_bytes().to_vec();
        for _ in 0..=dice.roll(6) {
            let at = dice.roll(bytes.len() + 1);
            match dice.roll(4) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] = dice.roll(256) as u8,
                2 => drop(bytes.splice(at..at, words[dice.roll(words.len())].bytes())),
                _ => drop(bytes.drain(at..(at + dice.roll(20)).min(bytes.len()))),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Err(shown) = parse(&text) {
            assert!(shown.contains("problem"), "{text:?}");
            assert!(!shown.contains('\u{1b}'), "{text:?}");
        }
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let text = format!("version = 1\nx = {}{}", "[".repeat(50_000), "]".repeat(50_000));
    assert!(parse(&text).is_err());
}
