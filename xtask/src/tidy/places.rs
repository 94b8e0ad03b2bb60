//! Rule: the repository names no machine of its authors and no package registry.
//! A path of somebody's home works nowhere else, and a registry's address in a
//! lock file sends every user to one mirror.

use super::finding::Finding;
use super::source::TextFile;

/// Folders that exist on one machine only. Written in halves, so that this file
/// passes its own rule.
const MACHINE_FOLDERS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

const REGISTRIES: [&str; 8] = [
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("://crates", ".io"),
    concat!("crates.io", "-index"),
    concat!("registry.npm", "js.org"),
    concat!("registry.yarn", "pkg.com"),
    concat!("pypi", ".org"),
    concat!("files.python", "hosted.org"),
];

/// Cargo's own name of the default registry, which every lock file must hold.
const DEFAULT_REGISTRY: &str =
    concat!("source = \"registry+https://github.com/rust-lang/crates.io", "-index\"");

const LOCK_FILES: [&str; 4] = ["package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"];

pub(crate) fn check(file: &TextFile<'_>) -> Vec<Finding> {
    let is_npm_lock = LOCK_FILES.contains(&file.name());
    let is_cargo_lock = file.name() == "Cargo.lock";
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| names_folder(line, folder)) {
            findings.push(Finding::at(file.path, number, format!("a path of one machine: {folder}")));
        }
        if is_npm_lock && is_resolved(line) {
            let message = "`resolved` names a host; npm needs omit-lockfile-registry-resolved=true";
            findings.push(Finding::at(file.path, number, message));
        } else if is_cargo_lock && line.starts_with("source = ") {
            if line != DEFAULT_REGISTRY {
                findings.push(Finding::at(
                    file.path,
                    number,
                    "a crate from elsewhere than the default registry",
                ));
            }
        } else if let Some(host) = REGISTRIES.iter().find(|host| line.contains(**host)) {
            findings.push(Finding::at(file.path, number, format!("names a package registry: {host}")));
        }
    }
    findings
}

/// Whether the folder stands where a path starts: `host/name` is a URL's path.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || "\"'`(=:,<[{|>/".contains(c))
    })
}

/// `"resolved": "packages/client"` is npm's link to a workspace and names no host.
fn is_resolved(line: &str) -> bool {
    let Some((_, value)) = line.split_once("resolved").or_else(|| line.split_once("tarball")) else {
        return false;
    };
    value.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&TextFile { path, text }).len()
    }

    #[test]
    fn a_path_of_one_machine_is_refused() {
        for folder in MACHINE_FOLDERS {
            for text in [
                format!("see {folder}main/a.rs"),
                format!("path = \"{folder}main\""),
                format!("[a]({folder}main)"),
                format!("file://{folder}main"),
                folder.to_owned(),
            ] {
                assert_eq!(findings("docs/tour.md", &text), 1, "{text}");
            }
        }
    }

    #[test]
    fn the_same_word_inside_a_longer_path_passes() {
        for folder in MACHINE_FOLDERS {
            for text in
                [format!("https://example.com{folder}a"), format!("src{folder}a"), format!("./a{folder}b")]
            {
                assert_eq!(findings("docs/tour.md", &text), 0, "{text}");
            }
        }
    }

    #[test]
    fn a_registry_host_is_refused() {
        for host in REGISTRIES {
            assert_eq!(findings("scripts/a", &format!("curl https:{host}/x")), 1, "{host}");
        }
    }

    #[test]
    fn an_npm_lock_file_with_a_resolved_host_is_refused() {
        let host = "      \"resolved\": \"https://mirror.example/a.tgz\",";
        assert_eq!(findings("package-lock.json", host), 1);
        assert_eq!(findings("package-lock.json", "      \"resolved\": \"packages/client\","), 0);
    }

    #[test]
    fn a_cargo_lock_file_holds_only_the_default_registry() {
        let other = "source = \"registry+https://mirror.example/index\"";
        assert_eq!(findings("Cargo.lock", other), 1);
        assert_eq!(findings("Cargo.lock", "source = \"git+https://example.com/a#1\""), 1);
        assert_eq!(findings("Cargo.lock", DEFAULT_REGISTRY), 0);
    }
}
