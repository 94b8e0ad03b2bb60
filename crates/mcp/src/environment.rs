//! What a started program sees of our environment: next to nothing.
//!
//! The gateway's variables hold the keys of every provider. A program gets a
//! short list that programs need to run, the names that the operator lists,
//! and the values that the operator writes. Names that make an interpreter or
//! the loader run other code are refused everywhere.

use std::collections::BTreeMap;
use std::ffi::OsString;

use secrecy::{ExposeSecret, SecretString};

use crate::settings::Program;

/// Names that every program gets.
const NEEDED: [&str; 10] =
    ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL"];

/// Names that turn a program into another one.
const DANGEROUS: [&str; 34] = [
    "BASH_ENV",
    "CDPATH",
    "CLASSPATH",
    "ENV",
    "GCONV_PATH",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GLOBIGNORE",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "MALLOC_PRELOAD",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC_WRAPPER",
    "SHELLOPTS",
    "TERMINFO",
    "_JAVA_OPTIONS",
];

/// Why a name may not be given to a program, or `None` if it may.
pub(crate) fn refusal(name: &str) -> Option<String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(fine) {
        return Some("is not the name of a variable".to_owned());
    }
    let upper = name.to_ascii_uppercase();
    let dangerous = DANGEROUS.contains(&upper.as_str())
        || ["LD_", "DYLD_", "GIT_CONFIG"].iter().any(|start| upper.starts_with(start));
    if dangerous {
        return Some("makes a program load other code and cannot be set for an MCP server".to_owned());
    }
    if upper.starts_with("TOOLYARD_") {
        return Some("belongs to the gateway and cannot be given to an MCP server".to_owned());
    }
    None
}

/// The values that the operator gives to a program: what it must not repeat.
pub(crate) fn given(program: &Program) -> impl Iterator<Item = SecretString> {
    let inherited = program.inherit.iter().filter(|name| refusal(name).is_none());
    let inherited = inherited.filter_map(|name| std::env::var(name).ok()).map(SecretString::from);
    program.env.values().cloned().chain(inherited)
}

/// The whole environment of a program.
pub(crate) fn of(program: &Program) -> BTreeMap<OsString, OsString> {
    let mut env = BTreeMap::new();
    let listed = NEEDED.into_iter().chain(program.inherit.iter().map(String::as_str));
    for name in listed.filter(|name| refusal(name).is_none()) {
        if let Some(value) = std::env::var_os(name) {
            env.insert(OsString::from(name), value);
        }
    }
    for (name, value) in program.env.iter().filter(|(name, _)| refusal(name).is_none()) {
        env.insert(OsString::from(name), OsString::from(value.expose_secret()));
    }
    env
}
