//! Rule: only `egress` builds HTTP clients. A client made elsewhere would go out
//! without the guard against private addresses, redirects and endless bodies.
//!
//! Clippy refuses the same calls; this rule also sees code behind features that
//! a build leaves out.

use super::finding::Finding;
use super::source::RustFile;

const HOME: &str = "egress";
const BUILDERS: [&str; 2] = ["Client", "ClientBuilder"];
/// The same in the library that egress itself builds on.
const LEGACY: [&str; 2] = ["Client", "Builder"];
const CONSTRUCTORS: [&str; 3] = ["new", "builder", "default"];

pub(crate) fn check(file: &RustFile<'_>) -> Vec<Finding> {
    if file.crate_folder().is_none_or(|folder| folder == HOME) {
        return Vec::new();
    }
    let mut starts = file.sequences(&["reqwest", "::", "get", "("]);
    for constructor in CONSTRUCTORS {
        for builder in BUILDERS {
            starts.extend(file.sequences(&["reqwest", "::", builder, "::", constructor]));
            starts.extend(plain_calls(file, &imported_names(file, "reqwest", builder), constructor));
        }
        for builder in LEGACY {
            starts.extend(file.sequences(&["legacy", "::", builder, "::", constructor]));
            starts.extend(plain_calls(file, &imported_names(file, "hyper_util", builder), constructor));
        }
    }
    starts.sort_unstable();
    starts
        .into_iter()
        .map(|at| file.tokens[at].line)
        .filter(|line| !file.is_test(*line))
        .map(|line| {
            let message = "an HTTP client outside crates/egress; ask egress for one";
            Finding::at(file.path, line, message)
        })
        .collect()
}

/// Calls without a path before them: a longer path is another crate's type, or
/// is found by itself.
fn plain_calls(file: &RustFile<'_>, names: &[&str], constructor: &str) -> Vec<usize> {
    let found = names.iter().flat_map(|name| file.sequences(&[name, "::", constructor]));
    found.filter(|at| *at == 0 || !file.tokens[*at - 1].is_sign("::")).collect()
}

/// The names under which `use library::…` brings the type into this file. Of
/// `hyper_util` only the client counts: it has servers to build as well.
fn imported_names<'a>(file: &RustFile<'a>, library: &str, wanted: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for start in file.sequences(&["use", library, "::"]) {
        let import = file.tokens[start..].iter().take_while(|token| !token.is_sign(";"));
        let import: Vec<_> = import.collect();
        if library == "hyper_util" && !import.iter().any(|token| token.is_word("legacy")) {
            continue;
        }
        for (at, token) in import.iter().enumerate().filter(|(_, token)| token.is_word(wanted)) {
            let renamed = import.get(at + 1).is_some_and(|next| next.is_word("as"));
            let name = if renamed { import.get(at + 2) } else { Some(token) };
            names.extend(name.map(|name| name.text));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, source: &str) -> usize {
        check(&RustFile::new(path, source)).len()
    }

    #[test]
    fn a_client_built_outside_egress_is_refused() {
        for source in [
            "let c = reqwest::Client::new();",
            "let c = reqwest::Client::builder().build();",
            "let c = reqwest::ClientBuilder::new();",
            "let r = reqwest::get(url).await;",
            "use reqwest::Client;\nlet c = Client::new();",
            "use reqwest::{Client as Http, Url};\nlet c = Http::default();",
            "let c = hyper_util::client::legacy::Client::builder(e).build(c);",
            "use hyper_util::client::legacy;\nlet c = legacy::Client::builder(e);",
            "use hyper_util::client::legacy::Client;\nlet c = Client::builder(e);",
            "use hyper_util::{client::legacy::Builder as Http, rt};\nlet c = Http::new(e);",
        ] {
            assert_eq!(findings("crates/models/src/openai.rs", source), 1, "{source}");
        }
    }

    #[test]
    fn egress_tests_and_other_clients_pass() {
        let source = "let c = reqwest::Client::new();";
        assert_eq!(findings("crates/egress/src/client.rs", source), 0);
        assert_eq!(findings("crates/server/tests/it/main.rs", source), 0);
        for source in [
            "use crate::Client;\nlet c = Client::new();",
            "use reqwest::Client;\nlet c = other::Client::new();",
            "use reqwest::Client;\nfn send(c: &Client) {}",
            "let s = \"reqwest::Client::new()\";",
            "use hyper_util::server::conn::auto::Builder;\nlet s = Builder::new(e);",
        ] {
            assert_eq!(findings("crates/models/src/openai.rs", source), 0, "{source}");
        }
    }
}
