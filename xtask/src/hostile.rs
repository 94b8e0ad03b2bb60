//! `hostile`: runs the proofs of the rows X1 to X20, wherever they live, and keeps
//! their index in `tests/hostile/README.md`. A proof is a test whose name begins
//! with its row: `x10_…`, or `x6_x11_…` for two.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which proofs to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Hostile {
    /// Rows, such as `X10`; all of them by default.
    rows: Vec<String>,
    /// Only write the index anew.
    #[arg(long, conflicts_with = "rows")]
    write: bool,
}

/// The list behind this line is written by `hostile --write`.
const MARK: &str = "<!-- The list below is written by `cargo run -p xtask -- hostile --write`. -->\n";
const ROWS: u32 = 20;

/// The names of all proofs: row, package, name.
type Proofs = BTreeMap<u32, BTreeMap<String, BTreeSet<String>>>;

pub(crate) fn run(hostile: &Hostile) -> Result<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let proofs = proofs(&root)?;
    if hostile.write {
        let page = root.join("tests/hostile/README.md");
        let text = std::fs::read_to_string(&page).map_err(|e| format!("{}: {e}", page.display()))?;
        std::fs::write(&page, with_list(&text, &proofs)?).map_err(|e| format!("{}: {e}", page.display()))?;
        return Ok(format!("{} proofs", count(&proofs)));
    }
    let mut wanted = Proofs::new();
    for row in &hostile.rows {
        let number = row.trim_start_matches(['X', 'x']).parse().ok();
        let found = number.and_then(|number| proofs.get_key_value(&number));
        let (number, tests) = found.ok_or_else(|| format!("there is no row {row}: X1 to X{ROWS}"))?;
        wanted.insert(*number, tests.clone());
    }
    let wanted = if wanted.is_empty() { proofs } else { wanted };
    let packages: BTreeSet<&String> = wanted.values().flat_map(BTreeMap::keys).collect();
    let names: BTreeSet<&str> =
        wanted.values().flat_map(BTreeMap::values).flatten().map(String::as_str).collect();
    println!("hostile: {} rows, {} proofs in {} packages", wanted.len(), names.len(), packages.len());
    let mut tests = Command::new(root.join("scripts/run-tests"));
    tests.current_dir(&root);
    for package in packages {
        tests.args(["-p", package]);
    }
    let names: Vec<&str> = names.into_iter().collect();
    tests.args(["-E", &format!("test(/(^|::)({})$/)", names.join("|"))]);
    let status = tests.status().map_err(|e| format!("scripts/run-tests cannot be started: {e}"))?;
    if status.success() { Ok(String::new()) } else { Err("a hostile proof failed".to_owned()) }
}

/// Looks through all test code for names that begin with a row.
fn proofs(root: &Path) -> Result<Proofs, String> {
    let mut proofs = Proofs::new();
    let mut folders: Vec<PathBuf> = ["crates", "tests", "xtask"].map(|name| root.join(name)).to_vec();
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let hidden = path.file_name().is_some_and(|name| name == "node_modules" || name == "target");
            if path.is_dir() && !hidden {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                let package = package_of(path.strip_prefix(root).unwrap_or(&path))?;
                for (rows, name) in text.lines().filter_map(proof) {
                    for row in rows {
                        let tests = proofs.entry(row).or_default().entry(package.clone()).or_default();
                        tests.insert(name.clone());
                    }
                }
            }
        }
    }
    Ok(proofs)
}

/// The package that a file belongs to.
fn package_of(path: &Path) -> Result<String, String> {
    let mut parts = path.iter().filter_map(|part| part.to_str());
    match (parts.next(), parts.next()) {
        (Some("xtask"), _) => Ok("xtask".to_owned()),
        (Some("crates"), Some("server")) => Ok("toolyard".to_owned()),
        (Some("crates" | "tests"), Some(folder)) => Ok(format!("toolyard-{folder}")),
        _ => Err(format!("{} belongs to no package", path.display())),
    }
}

/// `async fn x6_x11_name(…` is a proof of the rows 6 and 11.
fn proof(line: &str) -> Option<(Vec<u32>, String)> {
    let declared = line.trim_start().trim_start_matches("pub ").trim_start_matches("async ");
    let name = declared.strip_prefix("fn ")?.split('(').next()?;
    let rows: Vec<u32> = name
        .split('_')
        .map_while(|word| word.strip_prefix('x').and_then(|number| number.parse().ok()))
        .collect();
    (!rows.is_empty()).then(|| (rows, name.to_owned()))
}

fn count(proofs: &Proofs) -> usize {
    proofs.values().flat_map(BTreeMap::values).flatten().collect::<BTreeSet<_>>().len()
}

/// The page with its list as it should be.
fn with_list(page: &str, proofs: &Proofs) -> Result<String, String> {
    let (head, _) = page.split_once(MARK).ok_or("tests/hostile/README.md has no mark for its list")?;
    let mut text = format!("{head}{MARK}\n{} proofs.\n", count(proofs));
    for (row, packages) in proofs {
        text.push_str(&format!("\n### X{row}\n\n"));
        for (package, tests) in packages {
            let tests: Vec<String> = tests.iter().map(|name| format!("`{name}`")).collect();
            text.push_str(&format!("- `{package}`: {}\n", tests.join(", ")));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn every_row_has_proofs_and_the_index_names_exactly_them() {
        let proofs = proofs(&root()).unwrap();
        assert_eq!(proofs.keys().copied().collect::<Vec<_>>(), (1..=ROWS).collect::<Vec<_>>());
        let page = std::fs::read_to_string(root().join("tests/hostile/README.md")).unwrap();
        assert_eq!(with_list(&page, &proofs).unwrap(), page, "cargo run -p xtask -- hostile --write");
        for row in 1..=ROWS {
            assert_eq!(page.matches(&format!("\n| X{row} |")).count(), 1, "X{row}");
        }
    }

    #[test]
    fn a_name_says_its_rows() {
        let of = |line: &str| proof(line).map(|(rows, _)| rows);
        assert_eq!(of("    async fn x6_x11_a_socket_needs_a_key() {"), Some(vec![6, 11]));
        assert_eq!(of("pub async fn x18_a_login(home: &Home) {"), Some(vec![18]));
        assert_eq!(of("fn x_coordinate() {"), None);
        assert_eq!(of("    let x10_is = 1;"), None);
    }
}
