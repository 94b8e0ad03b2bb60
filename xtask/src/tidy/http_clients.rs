//! Rule: only `egress` builds HTTP clients. A client made elsewhere would go out
//! without the guard against private addresses, redirects and endless bodies.
//!
//! Clippy refuses the same calls; this rule also sees code behind features that
//! a build leaves out.

use super::finding::Finding;
use super::source::RustFile;

const HOME: &str = "egress";
const BUILDERS: [&str; 2] = ["Client", "ClientBuilder"];
const CONSTRUCTORS: [&str; 3] = ["new", "builder", "default"];

pub(crate) fn check(file: &RustFile<'_>) -> Vec<Finding> {
    if file.crate_folder().is_none_or(|folder| folder == HOME) {
        return Vec::new();
    }
    let mut starts = file.sequences(&["reqwest", "::", "get", "("]);
    for builder in BUILDERS {
        for constructor in CONSTRUCTORS {
            starts.extend(file.sequences(&["reqwest", "::", builder, "::", constructor]));
            for name in imported_names(file, builder) {
                let found = file.sequences(&[name, "::", constructor]);
                // A longer path is another crate's type, or is found above.
                let plain = |at: &usize| *at == 0 || !file.tokens[*at - 1].is_sign("::");
                starts.extend(found.into_iter().filter(plain));
            }
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

/// The names under which `use reqwest::…` brings the type into this file.
fn imported_names<'a>(file: &RustFile<'a>, wanted: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for start in file.sequences(&["use", "reqwest", "::"]) {
        let import = file.tokens[start..].iter().take_while(|token| !token.is_sign(";"));
        let import: Vec<_> = import.collect();
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
        ] {
            assert_eq!(findings("crates/models/src/openai.rs", source), 0, "{source}");
        }
    }
}
