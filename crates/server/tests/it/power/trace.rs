//! What a process did to its files and told its peers, by the system's record.

use std::collections::HashMap;
use std::path::Path;

/// The calls that are recorded.
pub(super) const CALLS: [&str; 14] = [
    "openat",
    "write",
    "pwrite64",
    "lseek",
    "ftruncate",
    "fallocate",
    "fsync",
    "fdatasync",
    "unlink",
    "rename",
    "sendto",
    "sendmsg",
    "writev",
    "pwritev",
];

/// One thing, at the moment from which it may have an effect.
#[derive(Debug, Clone)]
pub(super) enum Deed {
    Created(String),
    Wrote {
        file: String,
        at: usize,
        bytes: Vec<u8>,
    },
    Cut {
        file: String,
        size: usize,
    },
    Removed(String),
    /// A file, or the folder itself (an empty name), is on the disk.
    Synced(String),
    /// Bytes for a peer.
    Sent(Vec<u8>),
}

pub(super) struct Trace {
    pub(super) deeds: Vec<Deed>,
}

impl Trace {
    /// Reads `strace -f -y -xx`. Files outside the folder do not count, nor does
    /// the index of the log, which is made anew after a cut.
    pub(super) fn read(text: &[u8], folder: &Path) -> Self {
        let folder = folder.to_str().unwrap();
        let mut deeds = Vec::new();
        // A sync counts when it has returned, everything else when it was called.
        let mut syncing: HashMap<String, String> = HashMap::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for line in String::from_utf8_lossy(text).lines() {
            let Some((thread, rest)) = line.split_once(' ') else { continue };
            let rest = rest.trim_start();
            if rest.starts_with("<... ") {
                if rest.contains("sync resumed>")
                    && rest.ends_with("= 0")
                    && let Some(file) = syncing.remove(thread)
                {
                    deeds.push(Deed::Synced(file));
                }
                continue;
            }
            let Some((call, arguments)) = rest.split_once('(') else { continue };
            let file = file_of(arguments, folder);
            match (call, file) {
                ("openat", _) if arguments.contains("O_CREAT") => {
                    let path =
                        quoted(arguments).first().map(|path| String::from_utf8_lossy(path).into_owned());
                    if let Some(name) = path.as_deref().and_then(|path| inside(path, folder)) {
                        deeds.push(Deed::Created(name));
                    }
                }
                ("lseek", Some(file)) => {
                    let words: Vec<&str> = arguments.split(", ").collect();
                    if words.get(2).is_some_and(|whence| whence.starts_with("SEEK_SET")) {
                        places.insert(file, words[1].parse().unwrap());
                    }
                }
                ("write", Some(file)) => {
                    let bytes = quoted(arguments).remove(0);
                    let place = places.entry(file.clone()).or_default();
                    let at = *place;
                    *place += bytes.len();
                    deeds.push(Deed::Wrote { file, at, bytes });
                }
                ("pwrite64", Some(file)) => {
                    let bytes = quoted(arguments).remove(0);
                    let numbers = arguments.rsplit_once('"').unwrap().1;
                    let at = numbers.split([',', ')', ' ']).filter(|word| !word.is_empty()).nth(1);
                    deeds.push(Deed::Wrote { file, at: at.unwrap().parse().unwrap(), bytes });
                }
                ("ftruncate", Some(file)) => {
                    let size = arguments.split(", ").nth(1).unwrap().split([')', ' ']).next().unwrap();
                    deeds.push(Deed::Cut { file, size: size.parse().unwrap() });
                }
                ("fsync" | "fdatasync", Some(file)) => {
                    if rest.ends_with("= 0") {
                        deeds.push(Deed::Synced(file));
                    } else {
                        syncing.insert(thread.to_owned(), file);
                    }
                }
                ("unlink", _) => {
                    let path = String::from_utf8_lossy(&quoted(arguments)[0]).into_owned();
                    deeds.extend(inside(&path, folder).map(Deed::Removed));
                }
                ("fallocate" | "pwritev" | "rename", Some(file)) => {
                    panic!("{call} of {file} is not understood")
                }
                ("sendto" | "sendmsg" | "write" | "writev", None)
                    if behind(arguments).is_some_and(|name| name.starts_with("socket:")) =>
                {
                    deeds.push(Deed::Sent(quoted(arguments).concat()));
                }
                _ => {}
            }
        }
        Self { deeds }
    }

    pub(super) fn count(&self, of: impl Fn(&Deed) -> bool) -> usize {
        self.deeds.iter().filter(|deed| of(deed)).count()
    }
}

/// The name of a database file inside the folder; the folder's own is empty.
fn inside(path: &str, folder: &str) -> Option<String> {
    let name = path.strip_prefix(folder)?.trim_start_matches('/');
    (name.is_empty() || name.starts_with("toolyard.db") && !name.ends_with("-shm")).then(|| name.to_owned())
}

/// What the first argument stands for: `12</folder/name>`, in plain or in hex.
fn behind(arguments: &str) -> Option<String> {
    let (number, rest) = arguments.split_once('<')?;
    number.parse::<u32>().ok()?;
    let name = rest.split_once('>')?.0;
    if name.starts_with("\\x") { String::from_utf8(unhex(name)).ok() } else { Some(name.to_owned()) }
}

fn file_of(arguments: &str, folder: &str) -> Option<String> {
    inside(&behind(arguments)?, folder)
}

/// The texts in quotes, which are all `\x41\x42`.
fn quoted(arguments: &str) -> Vec<Vec<u8>> {
    arguments.split('"').skip(1).step_by(2).map(unhex).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok()).unwrap();
    text.as_bytes().chunks_exact(4).map(|four| digit(four[2]) * 16 + digit(four[3])).collect()
}
