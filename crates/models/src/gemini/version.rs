//! Which generation a model belongs to, by its name.

/// Major and minor number. A name that says none counts as the newest:
/// aliases such as `gemini-flash-latest` move on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    major: u32,
    minor: u32,
}

impl Version {
    pub(super) fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let newest = Self { major: u32::MAX, minor: 0 };
        let Some(rest) = name.strip_prefix("gemini-") else { return newest };
        let digits = rest.split('-').next().unwrap_or_default();
        let (major, minor) = digits.split_once('.').unwrap_or((digits, "0"));
        match (major.parse(), minor.parse()) {
            (Ok(major), Ok(minor)) => Self { major, minor },
            _ => newest,
        }
    }

    pub(super) fn is_at_least(self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_their_generation() {
        let version = |name: &str| Version::of(name);
        assert_eq!(version("gemini-2.5-flash"), Version { major: 2, minor: 5 });
        assert_eq!(version("models/gemini-3-pro-preview"), Version { major: 3, minor: 0 });
        assert!(!version("gemini-2.0-flash").is_at_least(2, 5));
        assert!(version("gemini-flash-latest").is_at_least(3, 0));
        assert!(version("tunedModels/mine").is_at_least(3, 0));
    }
}
