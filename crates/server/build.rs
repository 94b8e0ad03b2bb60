//! Puts the built web app into the binary. Without one the gateway still
//! builds: it then shows how to build the page.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let app = here.join("../../apps/chat");
    let dist = app.join("dist");
    let mut files = Vec::new();
    if dist.join("index.html").is_file() {
        println!("cargo::rerun-if-changed={}", dist.display());
        collect(&dist, &dist, &mut files)?;
    } else if app.is_dir() {
        // Notices when there is one.
        println!("cargo::rerun-if-changed={}", app.display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    files.sort();
    let mut code = String::from("pub(super) static FILES: &[(&str, &[u8])] = &[\n");
    for (name, path) in files {
        let _ = writeln!(code, "    ({name:?}, include_bytes!({:?})),", path.display().to_string());
    }
    code.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("web_files.rs");
    fs::write(out, code)
}

/// Every file below a folder, by its path from the root.
fn collect(root: &Path, folder: &Path, into: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, into)?;
        } else if let Ok(below) = path.strip_prefix(root) {
            let name = below.to_string_lossy().replace('\\', "/");
            // Notes of the build are no part of the page.
            if !name.starts_with('.') {
                into.push((name, path));
            }
        }
    }
    Ok(())
}
