//! Puts the Python SDK into the binary, file by file.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo");
    let sdk = Path::new(&manifest).join("../../sdk/python/ostler");
    println!("cargo::rerun-if-changed={}", sdk.display());
    let mut files: Vec<PathBuf> = std::fs::read_dir(&sdk)
        .expect("the SDK is part of the source tree")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
        .collect();
    files.sort();
    let mut list = String::from("const SDK: &[(&str, &str)] = &[\n");
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let path = file.canonicalize().expect("it exists");
        writeln!(list, "    ({name:?}, include_str!({path:?})),").expect("a string takes all");
    }
    list.push_str("];\n");
    let out = std::env::var("OUT_DIR").expect("set by cargo");
    std::fs::write(Path::new(&out).join("sdk.rs"), list).expect("OUT_DIR is writable");
}
