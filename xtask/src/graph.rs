//! Everything that cargo would build, with where it comes from and under which
//! licence. Reads only, and never the network: what is not on this machine is
//! not looked at, and `Graph::partial` says so.

use std::collections::HashSet;
use std::process::Command;

use serde_json::Value;

use crate::workspace::WorkspaceError;

/// A package that is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    /// Where it comes from; none for a folder of this repository.
    pub(crate) source: Option<String>,
    /// What it asks for by `*` from a registry or a repository.
    pub(crate) wildcards: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) crates: Vec<Crate>,
    /// Only this machine's platform could be looked at.
    pub(crate) partial: bool,
}

impl Graph {
    /// Asks cargo, for these platforms; for this machine's alone if the
    /// packages of the others were never downloaded.
    pub(crate) fn read(targets: &[String]) -> Result<Self, WorkspaceError> {
        match read(targets) {
            Ok(crates) => Ok(Self { crates, partial: false }),
            Err(WorkspaceError::Failed { .. }) => Ok(Self { crates: read(&[host()?])?, partial: true }),
            Err(other) => Err(other),
        }
    }
}

fn read(targets: &[String]) -> Result<Vec<Crate>, WorkspaceError> {
    let metadata =
        cargo("cargo metadata", &["metadata", "--format-version", "1"], "--filter-platform", targets)?;
    let document =
        serde_json::from_str(&metadata).map_err(|_| WorkspaceError::Metadata { field: "document" })?;
    let tree = ["tree", "--workspace", "--edges", "normal,build,dev", "--prefix", "none", "--format", "{p}"];
    parse(&document, &cargo("cargo tree", &tree, "--target", targets)?)
}

fn cargo(
    name: &'static str,
    words: &[&str],
    option: &str,
    targets: &[String],
) -> Result<String, WorkspaceError> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words).args(["--offline", "--locked", "--all-features"]);
    targets.iter().for_each(|target| {
        command.args([option, target]);
    });
    output(&mut command, name)
}

/// The platform of this machine, as rustc names it.
fn host() -> Result<String, WorkspaceError> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed = output(Command::new(rustc).arg("-vV"), "rustc -vV")?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or(WorkspaceError::Metadata { field: "host" })
}

fn output(command: &mut Command, name: &'static str) -> Result<String, WorkspaceError> {
    let output = command.output().map_err(|source| WorkspaceError::NotStarted { command: name, source })?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(WorkspaceError::Failed { command: name, text });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The packages that the tree shows, one per line as `name v1.2.3 …`. Metadata
/// lists more: optional ones that some feature only mentions.
fn parse(document: &Value, tree: &str) -> Result<Vec<Crate>, WorkspaceError> {
    let mut built = HashSet::new();
    for mut words in tree.lines().map(str::split_whitespace) {
        built.extend(words.next().zip(words.next()));
    }
    let packages = document["packages"].as_array();
    let packages = packages.ok_or(WorkspaceError::Metadata { field: "packages" })?;
    let crates = packages.iter().map(parse_package).collect::<Result<Vec<_>, _>>()?;
    let is_built = |one: &Crate| built.contains(&(one.name.as_str(), format!("v{}", one.version).as_str()));
    Ok(crates.into_iter().filter(is_built).collect())
}

fn parse_package(package: &Value) -> Result<Crate, WorkspaceError> {
    let text = |field: &'static str| package[field].as_str().map(str::to_owned);
    let wild = |dependency: &&Value| dependency["req"] == "*" && dependency["source"].is_string();
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(Crate {
        name: text("name").ok_or(WorkspaceError::Metadata { field: "name" })?,
        version: text("version").ok_or(WorkspaceError::Metadata { field: "version" })?,
        licence: text("license"),
        source: text("source"),
        wildcards: dependencies
            .iter()
            .filter(wild)
            .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_built_is_listed() {
        let document = json!({
            "packages": [
                {"name": "a", "version": "1.0.0", "license": "MIT", "source": "registry+x",
                 "dependencies": [
                    {"name": "wild", "req": "*", "source": "registry+x"},
                    {"name": "near", "req": "*", "source": null},
                    {"name": "tame", "req": "^1", "source": "registry+x"},
                 ]},
                {"name": "b", "version": "1.0.0", "license": null, "source": null},
            ],
        });
        let expected = Crate {
            name: "a".to_owned(),
            version: "1.0.0".to_owned(),
            licence: Some("MIT".to_owned()),
            source: Some("registry+x".to_owned()),
            wildcards: vec!["wild".to_owned()],
        };
        let tree = "a v1.0.0 (proc-macro)\n\nb v2.0.0 (*)\n";
        assert_eq!(parse(&document, tree).unwrap(), [expected]);
    }

    #[test]
    fn this_repository_builds_itself_and_its_dependencies() {
        let graph = Graph::read(&[host().unwrap()]).unwrap();
        let of = |name: &str| graph.crates.iter().find(|c| c.name == name);
        assert_eq!(of("xtask").unwrap().source, None);
        assert!(of("serde_json").unwrap().source.as_ref().unwrap().starts_with("registry+"));
    }
}
