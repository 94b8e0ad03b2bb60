#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

#[test]
fn metadata_becomes_packages_with_folders_and_kinds() {
    let document = json!({
        "workspace_root": "/src",
        "packages": [{
            "name": "toolyard-store",
            "manifest_path": "/src/crates/store/Cargo.toml",
            "dependencies": [
                {"name": "toolyard-protocol", "kind": null},
                {"name": "proptest", "kind": "dev"},
                {"name": "cc", "kind": "build"},
            ],
        }],
    });
    let workspace = Workspace::parse(&document).unwrap();
    let expected = Package {
        name: "toolyard-store".to_owned(),
        folder: "crates/store".to_owned(),
        dependencies: vec![
            Dependency { name: "toolyard-protocol".to_owned(), kind: DependencyKind::Normal },
            Dependency { name: "proptest".to_owned(), kind: DependencyKind::Development },
            Dependency { name: "cc".to_owned(), kind: DependencyKind::Build },
        ],
    };
    assert_eq!(workspace.packages, vec![expected]);
}

#[test]
fn metadata_without_packages_names_the_missing_field() {
    let error = Workspace::parse(&json!({"workspace_root": "/src"})).unwrap_err();
    assert!(error.to_string().contains("`packages`"), "{error}");
}

#[test]
fn this_repository_lists_its_own_manifest_and_not_its_build_folder() {
    let workspace = Workspace::read().unwrap();
    let files = workspace.files().unwrap();
    assert!(files.iter().any(|path| path == "Cargo.toml"));
    assert!(!files.iter().any(|path| path.starts_with("target/")));
}

#[test]
fn a_tree_without_git_is_walked_without_its_build_folder() {
    let workspace = Workspace::read().unwrap();
    let mut found = Vec::new();
    walk(&workspace.root, &workspace.root, &mut found).unwrap();
    assert!(found.iter().any(|path| path == "xtask/src/main.rs"));
    assert!(!found.iter().any(|path| path.starts_with("target/")));
}
