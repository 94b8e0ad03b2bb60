//! Rule: the crates are the thirteen of the design, and a crate's package is
//! named after its folder. A fourteenth needs a page in `docs/decisions/` and a
//! row in the table of arrows.

use std::collections::BTreeSet;

use super::arrows;
use super::finding::Finding;
use crate::workspace::Package;

pub(crate) fn check(packages: &[Package], files: &[String]) -> Vec<Finding> {
    let folders: BTreeSet<&str> = files
        .iter()
        .filter_map(|path| path.strip_prefix("crates/")?.split_once('/').map(|(folder, _)| folder))
        .collect();
    let unknown = folders.into_iter().filter(|folder| !arrows::is_crate_folder(folder)).map(|folder| {
        let message = "not one of the thirteen crates; a new one needs a decision page and its arrows";
        Finding::whole(&format!("crates/{folder}"), message)
    });
    let misnamed = packages.iter().filter_map(|package| {
        let folder = package.folder.strip_prefix("crates/")?;
        (arrows::folder_of(&package.name) != Some(folder)).then(|| {
            let message = format!("package {} is not named after its folder", package.name);
            Finding::whole(&format!("{}/Cargo.toml", package.folder), message)
        })
    });
    unknown.chain(misnamed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &str, name: &str) -> Package {
        Package { name: name.to_owned(), folder: folder.to_owned(), dependencies: Vec::new() }
    }

    #[test]
    fn a_fourteenth_crate_folder_is_refused() {
        let files = ["crates/store/src/lib.rs".to_owned(), "crates/core/src/lib.rs".to_owned()];
        let findings = check(&[], &files);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().starts_with("crates/core:"));
    }

    #[test]
    fn a_package_with_another_name_than_its_folder_is_refused() {
        let packages = [package("crates/store", "toolyard-database"), package("crates/server", "toolyard")];
        let findings = check(&packages, &[]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().contains("toolyard-database"));
    }
}
