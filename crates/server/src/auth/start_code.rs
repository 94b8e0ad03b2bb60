//! The code in the address that a gateway prints when it starts. Whoever reads
//! the terminal may open the web app with it, once.

use std::sync::{Mutex, PoisonError};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use toolyard_protocol::Hash;

use super::operator::random;

/// Only the hash is kept.
#[derive(Debug)]
pub(crate) struct StartCode(Mutex<Option<Hash>>);

impl StartCode {
    /// A new code, and what checks it.
    pub(crate) fn mint() -> Result<(Self, String), String> {
        let code = random()?;
        Ok((Self(Mutex::new(Some(Hash::of(code.as_bytes())))), code))
    }

    /// Is this the code? It is good once.
    pub(crate) fn take(&self, given: &str) -> bool {
        let given = Hash::of(given.as_bytes());
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = kept.as_ref().is_some_and(|kept| {
            verify_slices_are_equal(kept.as_str().as_bytes(), given.as_str().as_bytes()).is_ok()
        });
        if same {
            *kept = None;
        }
        same
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_start_code_is_good_once_and_a_wrong_one_does_not_spoil_it() {
        let (kept, code) = StartCode::mint().unwrap();
        assert!(!kept.take("another"));
        assert!(!kept.take(""));
        assert!(kept.take(&code));
        assert!(!kept.take(&code));
    }
}
