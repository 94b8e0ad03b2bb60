//! Row H4: tool names on a vendor's wire, there and back.

use std::collections::HashSet;

use toolyard_models::{ALIAS_CHARS, Names};

fn fits_everywhere(alias: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=ALIAS_CHARS).contains(&alias.len()) && alias.chars().all(fine)
}

#[test]
fn h4_a_name_that_fits_stays_and_another_comes_back_exactly() {
    let names = Names::new(["read_screen", "files.read", "münze", "", "a b"]);
    assert_eq!(names.alias("read_screen"), "read_screen");
    for given in ["files.read", "münze", "", "a b"] {
        let alias = names.alias(given);
        assert!(fits_everywhere(alias), "{given:?}: {alias:?}");
        assert_eq!(names.given(alias), given);
    }
    assert_eq!(names.given("made_up_by_the_model"), "made_up_by_the_model");
}

#[test]
fn h4_names_that_differ_only_where_vendors_look_away_stay_apart() {
    let long = "x".repeat(200);
    let longer = format!("{long}y");
    let given = ["a.b", "a/b", "a:b", "a b", "a_b", long.as_str(), longer.as_str()];
    let names = Names::new(given);
    let aliases: HashSet<&str> = given.iter().map(|name| names.alias(name)).collect();
    assert_eq!(aliases.len(), given.len());
    assert!(given.iter().all(|name| names.given(names.alias(name)) == *name));
}

#[test]
fn h4_an_alias_does_not_depend_on_its_neighbours() {
    let alone = Names::new(["files.read"]);
    let among = Names::new(["z", "files.write", "files.read", "a.b"]);
    assert_eq!(alone.alias("files.read"), among.alias("files.read"));
}

#[test]
fn h4_a_tool_may_be_named_like_the_alias_of_another() {
    let alias = Names::new(["files.read"]).alias("files.read").to_owned();
    let names = Names::new(["files.read", alias.as_str()]);
    assert_eq!(names.alias(&alias), alias);
    assert_ne!(names.alias("files.read"), alias);
    assert_eq!(names.given(names.alias("files.read")), "files.read");
    assert_eq!(names.given(&alias), alias);
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn name(&mut self) -> String {
        // Few letters and many lengths: names that are nearly the same.
        const LETTERS: [char; 12] = ['a', 'B', '7', '_', '-', '.', '/', ':', ' ', 'ü', '日', '\0'];
        let (letters, longest) = ([3, 5, 12][self.roll(3)], [3, 64, 90][self.roll(3)]);
        let length = self.roll(longest + 1);
        (0..length).map(|_| LETTERS[self.roll(letters)]).collect()
    }
}

#[test]
fn h4_a_thousand_random_names_map_there_and_back() {
    for seed in 0..8 {
        let mut dice = Dice(seed);
        let mut given = HashSet::new();
        while given.len() < 1000 {
            given.insert(dice.name());
        }
        let names = Names::new(given.iter().map(String::as_str));
        let mut aliases = HashSet::new();
        for name in &given {
            let alias = names.alias(name);
            assert!(fits_everywhere(alias), "{name:?}: {alias:?}");
            assert!(aliases.insert(alias.to_owned()), "{alias:?} stands for two names");
            assert_eq!(names.given(alias), name.as_str());
            assert!(!fits_everywhere(name) || alias == name);
        }
    }
}
