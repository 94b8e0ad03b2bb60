//! A folder that nothing leads out of.
//!
//! A path is walked from the open folder step by step, and no step follows a
//! link. So neither `..` nor a symbolic link, not even one that is put in the
//! way at the last moment, reaches anything outside.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;
use serde_json::{Value, json};
use toolyard_protocol::limits;

use crate::tool::Failure;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);
/// Not `NONBLOCK` alone: a pipe would otherwise wait for its other end.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);
const NEW: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::CLOEXEC);

/// The root, held open: renaming it leads nowhere else.
#[derive(Debug)]
pub(super) struct Folder {
    root: OwnedFd,
    path: PathBuf,
}

fn fault(path: &str, error: Errno) -> Failure {
    let why = match error {
        Errno::NOENT => "does not exist",
        // The two answers to a step that is a link.
        Errno::LOOP | Errno::MLINK => "is a symbolic link, which is not followed",
        Errno::NOTDIR => "is no folder, or a symbolic link on the way is not followed",
        Errno::ACCESS | Errno::PERM => "is not allowed",
        Errno::ISDIR => "is a folder",
        other => return format!("{path}: {other}").into(),
    };
    format!("{path}: {why}").into()
}

impl Folder {
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let whole = path.canonicalize()?;
        let root = rustix::fs::openat(CWD, &whole, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, path: whole })
    }

    /// The names on the way. An absolute path must lie below the root.
    fn names(&self, path: &str) -> Result<Vec<String>, Failure> {
        let outside = || Failure::from(format!("{path}: lies outside of the folder"));
        let given = Path::new(path);
        let below =
            if given.is_absolute() { given.strip_prefix(&self.path).map_err(|_| outside())? } else { given };
        let mut names = Vec::new();
        for part in below.components() {
            match part {
                Component::CurDir => {}
                Component::Normal(name) => names.push(name.to_str().ok_or_else(outside)?.to_owned()),
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        Ok(names)
    }

    /// The folder at the end of some names.
    fn walk(&self, path: &str, names: &[String]) -> Result<OwnedFd, Failure> {
        let mut at = self.root.try_clone()?;
        for name in names {
            at = rustix::fs::openat(&at, name.as_str(), FOLDER, Mode::empty()).map_err(|e| fault(path, e))?;
        }
        Ok(at)
    }

    /// The folder around a file, and the file's name.
    fn around(&self, path: &str) -> Result<(OwnedFd, String), Failure> {
        let mut names = self.names(path)?;
        let last = names.pop().ok_or_else(|| Failure::from(format!("{path}: is a folder")))?;
        Ok((self.walk(path, &names)?, last))
    }

    pub(super) fn read(&self, path: &str) -> Result<String, Failure> {
        let (folder, name) = self.around(path)?;
        let opened = rustix::fs::openat(&folder, name.as_str(), FILE, Mode::empty());
        let file = File::from(opened.map_err(|e| fault(path, e))?);
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(format!("{path}: is no file").into());
        }
        let most = limits::CLIENT_FILE_BYTES;
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(format!("{path}: is larger than {most} bytes").into());
        }
        String::from_utf8(bytes).map_err(|_| format!("{path}: is not text").into())
    }

    /// Writes a whole file: readers see the old one or the new one.
    pub(super) fn write(&self, path: &str, content: &str) -> Result<(), Failure> {
        let most = limits::CLIENT_FILE_BYTES;
        if content.len() as u64 > most {
            return Err(format!("{path}: is larger than {most} bytes").into());
        }
        let (folder, name) = self.around(path)?;
        let mode = match rustix::fs::statat(&folder, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Mode::from_raw_mode(0o644),
            Err(error) => return Err(fault(path, error)),
            Ok(about) => match FileType::from_raw_mode(about.st_mode as RawMode) {
                FileType::RegularFile => Mode::from_raw_mode(about.st_mode as RawMode),
                FileType::Symlink => return Err(fault(path, Errno::LOOP)),
                FileType::Directory => return Err(fault(path, Errno::ISDIR)),
                _ => return Err(format!("{path}: is no file").into()),
            },
        };
        let part = format!(".{}.toolyard-new", uuid::Uuid::now_v7().simple());
        let made = rustix::fs::openat(&folder, part.as_str(), NEW, mode).map_err(|e| fault(path, e))?;
        let mut file = File::from(made);
        let written = file.write_all(content.as_bytes()).and_then(|()| file.sync_all());
        let moved = written.map_err(Failure::from).and_then(|()| {
            rustix::fs::renameat(&folder, part.as_str(), &folder, name.as_str()).map_err(|e| fault(path, e))
        });
        if moved.is_err() {
            let _ = rustix::fs::unlinkat(&folder, part.as_str(), AtFlags::empty());
        }
        moved
    }

    /// The entries of a folder by name.
    pub(super) fn list(&self, path: &str) -> Result<Value, Failure> {
        let folder = self.walk(path, &self.names(path)?)?;
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(folder.as_fd()).map_err(|e| fault(path, e))? {
            let entry = entry.map_err(|e| fault(path, e))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if matches!(name.as_str(), "." | "..") {
                continue;
            }
            if entries.len() >= limits::CLIENT_FOLDER_ENTRIES {
                let most = limits::CLIENT_FOLDER_ENTRIES;
                return Err(format!("{path}: has more than {most} entries").into());
            }
            let kind = match rustix::fs::statat(&folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(about) => match FileType::from_raw_mode(about.st_mode as RawMode) {
                    FileType::Directory => "directory",
                    FileType::RegularFile => "file",
                    FileType::Symlink => "link",
                    _ => "other",
                },
                Err(_) => "other",
            };
            entries.push((name, kind));
        }
        entries.sort();
        Ok(entries.into_iter().map(|(name, kind)| json!({ "name": name, "type": kind })).collect())
    }
}
