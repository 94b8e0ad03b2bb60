//! At which points of the loop a hook takes part.

use toolyard_protocol::manifest::HookName;

/// A set of points. A point that no hook has costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Points(u16);

impl Points {
    pub const ALL: Self = Self(u16::MAX);

    pub const fn of(names: &[HookName]) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < names.len() {
            bits |= 1 << names[i] as u16;
            i += 1;
        }
        Self(bits)
    }

    pub const fn has(self, name: HookName) -> bool {
        self.0 & (1 << name as u16) != 0
    }
}

impl Default for Points {
    fn default() -> Self {
        Self::ALL
    }
}
