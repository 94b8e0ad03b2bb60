//! What cargo and git know about the repository: its root, its packages and its
//! files. Reads only; it judges nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Why the repository could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspaceError {
    #[error("`{command}` could not be started: {source}")]
    NotStarted { command: &'static str, source: io::Error },
    #[error("`{command}` failed: {text}")]
    Failed { command: &'static str, text: String },
    #[error("the output of `cargo metadata` has no usable `{field}`")]
    Metadata { field: &'static str },
    #[error("{path}: {source}")]
    Unreadable { path: String, source: io::Error },
}

/// When cargo uses a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Normal,
    Development,
    Build,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: DependencyKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its folder, relative to the root, with `/` between the parts.
    pub(crate) folder: String,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) packages: Vec<Package>,
}

impl Workspace {
    /// Asks cargo about the workspace of the current directory.
    pub(crate) fn read() -> Result<Self, WorkspaceError> {
        const COMMAND: &str = "cargo metadata";
        // Cargo names itself in CARGO when it runs this program.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--no-deps"])
            .output()
            .map_err(|source| WorkspaceError::NotStarted { command: COMMAND, source })?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(WorkspaceError::Failed { command: COMMAND, text });
        }
        let document = serde_json::from_slice(&output.stdout)
            .map_err(|_| WorkspaceError::Metadata { field: "document" })?;
        Self::parse(&document)
    }

    pub(crate) fn parse(document: &Value) -> Result<Self, WorkspaceError> {
        let root = PathBuf::from(text(document, "workspace_root")?);
        let packages = list(document, "packages")?
            .iter()
            .map(|package| parse_package(package, &root))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self { root, packages })
    }

    /// The repository's files, relative to the root: what git tracks or would
    /// track. A tree without git (a source archive) is walked instead.
    pub(crate) fn files(&self) -> Result<Vec<String>, WorkspaceError> {
        let listed = Command::new("git")
            .current_dir(&self.root)
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"])
            .output();
        let mut files = match listed {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout)
                .split('\0')
                .filter(|path| !path.is_empty())
                .map(str::to_owned)
                .collect(),
            _ => {
                let mut found = Vec::new();
                walk(&self.root, &self.root, &mut found)?;
                found
            }
        };
        // A deleted file is still tracked until the deletion is committed.
        files.retain(|path| self.root.join(path).is_file());
        files.sort();
        Ok(files)
    }

    /// The text of a file, or nothing if it is not text.
    pub(crate) fn text_of(&self, path: &str) -> Result<Option<String>, WorkspaceError> {
        let bytes = fs::read(self.root.join(path))
            .map_err(|source| WorkspaceError::Unreadable { path: path.to_owned(), source })?;
        Ok(String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')))
    }
}

fn parse_package(package: &Value, root: &Path) -> Result<Package, WorkspaceError> {
    let manifest = PathBuf::from(text(package, "manifest_path")?);
    let folder = manifest.parent().unwrap_or(root);
    let folder = slashed(folder.strip_prefix(root).unwrap_or(folder));
    let dependencies =
        list(package, "dependencies")?.iter().map(parse_dependency).collect::<Result<Vec<_>, _>>()?;
    Ok(Package { name: text(package, "name")?.to_owned(), folder, dependencies })
}

fn parse_dependency(dependency: &Value) -> Result<Dependency, WorkspaceError> {
    let kind = match dependency.get("kind").and_then(Value::as_str) {
        None => DependencyKind::Normal,
        Some("dev") => DependencyKind::Development,
        Some("build") => DependencyKind::Build,
        Some(_) => return Err(WorkspaceError::Metadata { field: "kind" }),
    };
    Ok(Dependency { name: text(dependency, "name")?.to_owned(), kind })
}

fn text<'a>(value: &'a Value, field: &'static str) -> Result<&'a str, WorkspaceError> {
    value.get(field).and_then(Value::as_str).ok_or(WorkspaceError::Metadata { field })
}

fn list<'a>(value: &'a Value, field: &'static str) -> Result<&'a Vec<Value>, WorkspaceError> {
    value.get(field).and_then(Value::as_array).ok_or(WorkspaceError::Metadata { field })
}

/// Folders that hold what is built or installed, never what is written by hand.
const UNTRACKED: [&str; 5] = [".git", ".toolyard", "dist", "node_modules", "target"];

fn walk(root: &Path, folder: &Path, found: &mut Vec<String>) -> Result<(), WorkspaceError> {
    let unreadable = |source| WorkspaceError::Unreadable { path: folder.display().to_string(), source };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let kind = entry.file_type().map_err(unreadable)?;
        let path = entry.path();
        if kind.is_dir() {
            if !UNTRACKED.iter().any(|name| entry.file_name() == *name) {
                walk(root, &path, found)?;
            }
        } else if kind.is_file() {
            found.push(slashed(path.strip_prefix(root).unwrap_or(&path)));
        }
    }
    Ok(())
}

fn slashed(path: &Path) -> String {
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
#[path = "workspace_tests.rs"]
mod tests;
