//! Rule: a crate uses only the crates that the table of arrows allows.
//!
//! An absent arrow is a promise ("server never calls models"), so the table is
//! data and a new arrow is a change of this file that a reviewer sees.
//!
//! Development dependencies follow the same table. A test that reaches around a
//! wall would hold the wall's two sides together as firmly as code does, and
//! every change above would rebuild the tests below. Two things are free: a
//! crate's dependency on itself (to switch on a feature for its own tests), and
//! whatever `xtask`, `tests`, `bench` and `fuzz` use, since nothing uses them.

use super::finding::Finding;
use crate::workspace::Package;

/// A crate's folder and the folders it may use. Every crate may use `protocol`.
const ARROWS: [(&str, &[&str]); 13] = [
    ("protocol", &[]),
    ("schema", &[]),
    ("engine", &[]),
    ("dialects", &[]),
    ("store", &[]),
    ("egress", &[]),
    ("models", &["egress", "schema"]),
    ("mcp", &["egress", "schema"]),
    ("plugins", &["egress", "schema"]),
    ("tools", &["dialects", "egress", "mcp", "models", "plugins", "schema", "store"]),
    ("runtime", &["dialects", "egress", "engine", "models", "plugins", "schema", "store", "tools"]),
    ("server", &["client", "dialects", "egress", "mcp", "plugins", "runtime", "schema", "store"]),
    ("client", &["dialects", "egress", "mcp", "plugins", "schema"]),
];

/// Top folders whose packages may use anything.
const EXEMPT: [&str; 4] = ["xtask", "tests", "bench", "fuzz"];

/// The folder of a crate by its package name: `toolyard-store` is in `store`.
pub(crate) fn folder_of(package: &str) -> Option<&str> {
    match package {
        "toolyard" => Some("server"),
        _ => package.strip_prefix("toolyard-"),
    }
}

pub(crate) fn is_crate_folder(folder: &str) -> bool {
    ARROWS.iter().any(|(name, _)| *name == folder)
}

pub(crate) fn is_exempt(package: &Package) -> bool {
    let top = package.folder.split('/').next().unwrap_or_default();
    EXEMPT.contains(&top)
}

pub(crate) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages.iter().filter(|package| !is_exempt(package)) {
        let manifest = format!("{}/Cargo.toml", package.folder);
        for dependency in &package.dependencies {
            // Only members of the workspace are ends of an arrow.
            let Some(used) = packages.iter().find(|other| other.name == dependency.name) else {
                continue;
            };
            if used.name != package.name && !is_allowed(&package.name, &used.name) {
                let message = format!(
                    "{} may not use {}: no such arrow in xtask/src/tidy/arrows.rs",
                    package.name, used.name
                );
                findings.push(Finding::whole(&manifest, message));
            }
        }
    }
    findings
}

fn is_allowed(user: &str, used: &str) -> bool {
    let (Some(user), Some(used)) = (folder_of(user), folder_of(used)) else {
        return false;
    };
    let row = ARROWS.iter().find(|(folder, _)| *folder == user);
    row.is_some_and(|(_, uses)| used == "protocol" || uses.contains(&used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Dependency, DependencyKind};

    fn package(folder: &str, name: &str, uses: &[(&str, DependencyKind)]) -> Package {
        let dependencies =
            uses.iter().map(|(name, kind)| Dependency { name: (*name).to_owned(), kind: *kind }).collect();
        Package { name: name.to_owned(), folder: folder.to_owned(), dependencies }
    }

    fn with_targets(user: Package) -> Vec<Package> {
        let targets = ["protocol", "models", "egress", "store"];
        let mut packages = vec![user];
        for folder in targets {
            packages.push(package(&format!("crates/{folder}"), &format!("toolyard-{folder}"), &[]));
        }
        packages
    }

    #[test]
    fn an_arrow_outside_the_table_is_refused() {
        let server = package("crates/server", "toolyard", &[("toolyard-models", DependencyKind::Normal)]);
        let findings = check(&with_targets(server));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().contains("toolyard may not use toolyard-models"));
    }

    #[test]
    fn a_development_arrow_follows_the_same_table() {
        let engine =
            package("crates/engine", "toolyard-engine", &[("toolyard-store", DependencyKind::Development)]);
        assert_eq!(check(&with_targets(engine)).len(), 1);
    }

    #[test]
    fn arrows_of_the_table_foreign_crates_and_a_crate_itself_are_allowed() {
        let models = package(
            "crates/models",
            "toolyard-models",
            &[
                ("toolyard-protocol", DependencyKind::Normal),
                ("toolyard-egress", DependencyKind::Normal),
                ("toolyard-models", DependencyKind::Development),
                ("serde", DependencyKind::Normal),
            ],
        );
        assert_eq!(check(&with_targets(models)), vec![]);
    }

    #[test]
    fn packages_that_nothing_uses_are_free() {
        for folder in ["xtask", "tests/e2e", "bench/floor", "fuzz"] {
            let user = package(folder, "anything", &[("toolyard-models", DependencyKind::Normal)]);
            assert_eq!(check(&with_targets(user)), vec![], "{folder}");
        }
    }

    #[test]
    fn the_table_has_no_cycle() {
        fn reaches(from: &str, target: &str) -> bool {
            ARROWS
                .iter()
                .filter(|(folder, _)| *folder == from)
                .flat_map(|(_, uses)| uses.iter())
                .any(|next| *next == target || reaches(next, target))
        }
        // Small enough to search from every crate; a cycle would overflow the stack.
        for (folder, uses) in ARROWS {
            assert!(!reaches(folder, folder), "{folder}");
            assert!(uses.iter().all(|name| is_crate_folder(name)), "{folder}");
        }
    }
}
