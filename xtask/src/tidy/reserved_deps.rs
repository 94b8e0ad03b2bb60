//! Rule: some dependencies belong to one crate, and the pure crates have none
//! that wait, speak or log. Development dependencies are free: a test may stand
//! up a server of its own to play the outside world.

use super::arrows;
use super::finding::Finding;
use crate::workspace::{DependencyKind, Package};

/// A dependency and the only crate that knows it.
const RESERVED: [(&str, &str, &str); 4] = [
    ("axum", "server", "the HTTP edge is server's alone"),
    ("utoipa-axum", "server", "the HTTP edge is server's alone"),
    ("clap", "server", "the command line is server's alone"),
    ("hyper-rustls", "egress", "HTTP clients are egress's alone"),
];

/// A crate and what would break its purity.
const PURE: [(&str, &[&str], &str); 4] = [
    ("protocol", &["tokio", "tokio-util", "futures", "reqwest"], "protocol has no IO and no async"),
    ("dialects", &["tokio", "tokio-util", "reqwest"], "dialects only translate"),
    ("schema", &["tokio", "tokio-util", "reqwest"], "schema only compiles and checks"),
    (
        "engine",
        &["tokio", "tokio-util", "futures", "reqwest", "tracing", "log"],
        "engine never awaits, logs or reads a clock",
    ),
];

pub(crate) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages.iter().filter(|package| !arrows::is_exempt(package)) {
        let folder = arrows::folder_of(&package.name).unwrap_or(&package.name);
        let used = package.dependencies.iter().filter(|used| used.kind != DependencyKind::Development);
        for name in used.map(|used| used.name.as_str()) {
            let reserved = RESERVED.iter().filter(|row| row.0 == name && row.1 != folder).map(|row| row.2);
            let impure = PURE.iter().filter(|row| row.0 == folder && row.1.contains(&name)).map(|row| row.2);
            for why in reserved.chain(impure) {
                let message = format!("{} may not depend on {name}: {why}", package.name);
                findings.push(Finding::whole(&format!("{}/Cargo.toml", package.folder), message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn package(folder: &str, name: &str, uses: &str, kind: DependencyKind) -> Package {
        let dependencies = vec![Dependency { name: uses.to_owned(), kind }];
        Package { name: name.to_owned(), folder: folder.to_owned(), dependencies }
    }

    #[test]
    fn axum_outside_server_is_refused() {
        let packages = [package("crates/runtime", "toolyard-runtime", "axum", DependencyKind::Normal)];
        let findings = check(&packages);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().contains("toolyard-runtime may not depend on axum"));
    }

    #[test]
    fn what_http_clients_are_made_of_is_refused_outside_egress() {
        let models = package("crates/models", "toolyard-models", "hyper-rustls", DependencyKind::Normal);
        let egress = package("crates/egress", "toolyard-egress", "hyper-rustls", DependencyKind::Normal);
        let findings = check(&[models, egress]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().contains("toolyard-models may not depend on hyper-rustls"));
    }

    #[test]
    fn tokio_in_engine_is_refused() {
        let packages = [package("crates/engine", "toolyard-engine", "tokio", DependencyKind::Normal)];
        assert_eq!(check(&packages).len(), 1);
    }

    #[test]
    fn server_xtask_and_tests_may_use_them() {
        let packages = [
            package("crates/server", "toolyard", "axum", DependencyKind::Normal),
            package("xtask", "xtask", "clap", DependencyKind::Normal),
            package("bench/floor", "floor", "axum", DependencyKind::Normal),
            package("crates/models", "toolyard-models", "axum", DependencyKind::Development),
        ];
        assert_eq!(check(&packages), vec![]);
    }
}
