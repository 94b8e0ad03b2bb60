//! Licence expressions as crates write them: names with `AND`, `OR`, `WITH` and
//! parentheses, and the old `/` for `OR`. `AND` binds closer than `OR`.

/// Whether an expression can be met with the allowed licences alone. None if it
/// cannot be read.
pub(super) fn allowed(expression: &str, allow: &[String]) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = Words { words: spaced.split_whitespace().collect(), at: 0, allow };
    let met = words.either()?;
    (words.at == words.words.len()).then_some(met)
}

struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
    allow: &'a [String],
}

impl<'a> Words<'a> {
    fn take(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }

    fn takes(&mut self, word: &str) -> bool {
        let there = self.words.get(self.at).is_some_and(|found| found.eq_ignore_ascii_case(word));
        self.at += usize::from(there);
        there
    }

    fn either(&mut self) -> Option<bool> {
        let mut met = self.both()?;
        while self.takes("OR") {
            met |= self.both()?;
        }
        Some(met)
    }

    fn both(&mut self) -> Option<bool> {
        let mut met = self.one()?;
        while self.takes("AND") {
            met &= self.one()?;
        }
        Some(met)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let met = self.either()?;
            return self.takes(")").then_some(met);
        }
        let name = self.take().filter(|word| !matches!(*word, "AND" | "OR" | "WITH" | "(" | ")"))?;
        let named =
            if self.takes("WITH") { format!("{name} WITH {}", self.take()?) } else { name.to_owned() };
        Some(self.allow.contains(&named))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_or_not() {
        let allow = ["MIT", "Apache-2.0", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        let cases = [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("MIT OR GPL-3.0", Some(true)),
            ("GPL-3.0/MIT", Some(true)),
            ("MIT AND GPL-3.0", Some(false)),
            ("GPL-3.0 OR MIT AND ISC", Some(true)),
            ("GPL-3.0 AND MIT OR MPL-2.0", Some(false)),
            ("(MIT OR GPL-3.0) AND ISC", Some(true)),
            ("(MIT OR ISC) AND GPL-3.0", Some(false)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("MIT WITH LLVM-exception", Some(false)),
            ("", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT)", None),
            ("MIT ISC", None),
            ("AND MIT", None),
        ];
        for (expression, expected) in cases {
            assert_eq!(allowed(expression, &allow), expected, "{expression:?}");
        }
    }
}
