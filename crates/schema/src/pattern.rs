//! A look at a regular expression before it is compiled.
//!
//! The engine is linear in the text, but its constant is the number of states, and a counted
//! repetition multiplies those: `[ab]*a[ab]{4000}c` costs 30 µs per byte. This scan finds what the
//! engine refuses anyway, to name it, and estimates the states, to price a match. It accepts any
//! text: whether a pattern is valid is the engine's word.

/// What the scan saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatternShape {
    /// Look-around or back-references: needs a backtracking engine.
    pub backtracks: bool,
    /// States the engine may keep alive at once, estimated.
    pub states: u64,
}

pub(crate) fn scan(pattern: &str) -> PatternShape {
    let mut scan = Scan { rest: pattern, backtracks: false, groups: vec![Group::default()] };
    while let Some(character) = scan.next() {
        match character {
            '\\' => scan.escape(),
            '[' => scan.class(),
            '(' => scan.open(),
            ')' => scan.close(),
            '{' => scan.repeat(),
            '*' | '+' | '?' | '|' | '^' | '$' => {}
            // Any character of Unicode is several byte states.
            '.' => scan.atom(2),
            _ => scan.atom(1),
        }
    }
    PatternShape {
        backtracks: scan.backtracks,
        states: scan.groups.iter().fold(0, |sum: u64, group| sum.saturating_add(group.states)),
    }
}

/// States of an open group, and of its last atom, which a repetition multiplies.
#[derive(Debug, Default)]
struct Group {
    states: u64,
    last: u64,
}

struct Scan<'a> {
    rest: &'a str,
    backtracks: bool,
    groups: Vec<Group>,
}

impl Scan<'_> {
    fn next(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.skip(character.len_utf8());
        Some(character)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn atom(&mut self, states: u64) {
        if let Some(group) = self.groups.last_mut() {
            group.states = group.states.saturating_add(states);
            group.last = states;
        }
    }

    fn escape(&mut self) {
        match self.next() {
            Some('1'..='9') => self.backtracks = true,
            Some('k') if self.rest.starts_with('<') => self.backtracks = true,
            Some('p' | 'P' | 'W' | 'S' | 'D') => self.atom(2),
            Some(_) | None => self.atom(1),
        }
    }

    fn class(&mut self) {
        let negated = self.rest.starts_with('^');
        while let Some(character) = self.next() {
            match character {
                '\\' => drop(self.next()),
                ']' => break,
                _ => {}
            }
        }
        self.atom(if negated { 2 } else { 1 });
    }

    fn open(&mut self) {
        if ["?=", "?!", "?<=", "?<!"].iter().any(|look| self.rest.starts_with(look)) {
            self.backtracks = true;
        }
        self.groups.push(Group::default());
    }

    fn close(&mut self) {
        // An unmatched `)` leaves the outermost group where it is.
        if self.groups.len() > 1
            && let Some(group) = self.groups.pop()
        {
            self.atom(group.states);
        }
    }

    /// `{n}`, `{n,}`, `{n,m}`: the last atom counts as often as it may be repeated.
    fn repeat(&mut self) {
        let Some((inside, _)) = self.rest.split_once('}') else {
            return self.atom(1);
        };
        let times = inside.split(',').filter_map(|bound| bound.trim().parse::<u64>().ok()).max();
        let Some(times) = times else {
            return self.atom(1);
        };
        self.skip(inside.len() + 1);
        if let Some(group) = self.groups.last_mut() {
            let more = group.last.saturating_mul(times.saturating_sub(1));
            group.states = group.states.saturating_add(more);
            group.last = group.last.saturating_add(more);
        }
    }
}
