//! Why a model gave no whole reply. The sentence of an error is public; what
//! the vendor wrote is in its [`Detail`] and must stay with the operator.

use std::fmt;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use toolyard_protocol::error::ErrorCode;

/// Characters of a vendor's answer that are kept.
const DETAIL_CHARS: usize = 2000;

/// Characters of a model's name in a sentence.
const NAME_CHARS: usize = 120;

/// What only the operator may read. It has no `Display`, and its `Debug`
/// prints nothing.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Detail(String);

impl Detail {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Some vendors repeat the key in their answer. Not even the operator's
    /// log may hold it. Shortened only after that: a cut key is not found.
    fn seal(&mut self, keys: &[SecretString]) {
        for key in keys.iter().map(ExposeSecret::expose_secret) {
            if !key.is_empty() && self.0.contains(key) {
                self.0 = self.0.replace(key, "[key]");
            }
        }
        if let Some((end, _)) = self.0.char_indices().nth(DETAIL_CHARS) {
            self.0.truncate(end);
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A variant answers: what can the caller do?
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Name another provider, or configure this one.
    #[error("Model provider {name:?} is not configured. {}", known_list(.known))]
    UnknownProvider { name: String, known: Vec<String> },
    /// Name a provider that can do it.
    #[error("Model provider {name:?} has no {what}. {}", able_list(.able))]
    NoSkill { name: String, what: &'static str, able: Vec<String> },
    /// Name another model. The name is the vendor's, empty if nobody told it.
    #[error("The provider does not know {}", this_model(.name))]
    UnknownModel { name: String, detail: Detail },
    /// Name another model, or add this one to the configuration.
    #[error("Model {name:?} is not known. {}", models_list(.known))]
    NoSuchModel { name: String, known: Vec<String> },
    /// The operator must mend the key.
    #[error("The model provider refused the gateway's key")]
    KeyRefused { detail: Detail },
    /// The request itself is wrong for this vendor.
    #[error("The model provider refused the request (status {status})")]
    RequestRefused { status: u16, detail: Detail },
    /// Shorten the conversation.
    #[error("The conversation is longer than the model can read")]
    ContextTooLong { detail: Detail },
    /// Ask for something else.
    #[error("The model provider refused the request for its content")]
    Filtered { detail: Detail },
    /// Try later; less often.
    #[error("The model provider allows no more requests now{}", later(.retry_after))]
    RateLimited { retry_after: Option<Duration>, detail: Detail },
    /// Fill the account, or ask another provider: waiting does not help.
    #[error("The gateway's account at the model provider is used up")]
    OutOfQuota { detail: Detail },
    /// Try later.
    #[error("The model provider is busy or out of order (status {status}){}", later(.retry_after))]
    Overloaded { status: u16, retry_after: Option<Duration>, detail: Detail },
    /// Try later, or mend the address.
    #[error("The model provider cannot be reached")]
    Unreachable { detail: Detail },
    /// Try later.
    #[error("The model provider said nothing for {} s", .after.as_secs_f32())]
    Silent { after: Duration },
    /// What answers there is no model.
    #[error("The model provider's answer cannot be read")]
    Unreadable { detail: Detail },
    /// The reply is larger than the gateway takes.
    #[error("The model's reply is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    /// The reply ended before its end. Part of it may be shown already.
    #[error("The model's stream was cut")]
    Cut { detail: Detail },
}

impl ModelError {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownProvider { .. }
            | Self::NoSkill { .. }
            | Self::UnknownModel { .. }
            | Self::NoSuchModel { .. } => ErrorCode::ModelNotFound,
            Self::Cut { .. } => ErrorCode::ModelStreamCut,
            Self::KeyRefused { .. } => ErrorCode::ModelKeyRefused,
            Self::RequestRefused { .. } => ErrorCode::ModelRequestRefused,
            Self::ContextTooLong { .. } => ErrorCode::ContextTooLong,
            Self::Filtered { .. } => ErrorCode::ContentFiltered,
            Self::RateLimited { .. } | Self::OutOfQuota { .. } => ErrorCode::ModelRateLimited,
            Self::Overloaded { .. } => ErrorCode::ModelOverloaded,
            Self::Unreachable { .. }
            | Self::Silent { .. }
            | Self::Unreadable { .. }
            | Self::TooLarge { .. } => ErrorCode::ModelFailed,
        }
    }

    /// The same request may work if it is sent again.
    pub const fn retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. } | Self::Overloaded { .. } | Self::Unreachable { .. } => true,
            // Somebody waited long enough, or saw part of the reply.
            Self::Silent { .. } | Self::Cut { .. } => false,
            Self::UnknownProvider { .. }
            | Self::NoSkill { .. }
            | Self::UnknownModel { .. }
            | Self::NoSuchModel { .. }
            | Self::KeyRefused { .. }
            | Self::RequestRefused { .. }
            | Self::ContextTooLong { .. }
            | Self::Filtered { .. }
            | Self::OutOfQuota { .. }
            | Self::Unreadable { .. }
            | Self::TooLarge { .. } => false,
        }
    }

    /// Another model may be asked instead: this one is busy, out of order, out
    /// of reach or out of money.
    pub const fn falls_back(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::OutOfQuota { .. }
            | Self::Overloaded { .. }
            | Self::Unreachable { .. }
            | Self::Silent { .. } => true,
            Self::UnknownProvider { .. }
            | Self::NoSkill { .. }
            | Self::UnknownModel { .. }
            | Self::NoSuchModel { .. }
            | Self::KeyRefused { .. }
            | Self::RequestRefused { .. }
            | Self::ContextTooLong { .. }
            | Self::Filtered { .. }
            | Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::Cut { .. } => false,
        }
    }

    /// How long the vendor asked us to stay away.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => *retry_after,
            Self::UnknownProvider { .. }
            | Self::NoSkill { .. }
            | Self::UnknownModel { .. }
            | Self::NoSuchModel { .. }
            | Self::KeyRefused { .. }
            | Self::RequestRefused { .. }
            | Self::ContextTooLong { .. }
            | Self::Filtered { .. }
            | Self::OutOfQuota { .. }
            | Self::Unreachable { .. }
            | Self::Silent { .. }
            | Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::Cut { .. } => None,
        }
    }

    /// For the operator only.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::UnknownModel { detail, .. }
            | Self::KeyRefused { detail }
            | Self::RequestRefused { detail, .. }
            | Self::ContextTooLong { detail }
            | Self::Filtered { detail }
            | Self::RateLimited { detail, .. }
            | Self::OutOfQuota { detail }
            | Self::Overloaded { detail, .. }
            | Self::Unreachable { detail }
            | Self::Unreadable { detail }
            | Self::Cut { detail } => Some(detail.as_str()),
            Self::UnknownProvider { .. }
            | Self::NoSkill { .. }
            | Self::NoSuchModel { .. }
            | Self::Silent { .. }
            | Self::TooLarge { .. } => None,
        }
    }

    /// Makes the error fit to leave this crate.
    pub(crate) fn sealed(mut self, keys: &[SecretString]) -> Self {
        match &mut self {
            Self::UnknownModel { detail, .. }
            | Self::KeyRefused { detail }
            | Self::RequestRefused { detail, .. }
            | Self::ContextTooLong { detail }
            | Self::Filtered { detail }
            | Self::RateLimited { detail, .. }
            | Self::OutOfQuota { detail }
            | Self::Overloaded { detail, .. }
            | Self::Unreachable { detail }
            | Self::Unreadable { detail }
            | Self::Cut { detail } => detail.seal(keys),
            Self::UnknownProvider { .. }
            | Self::NoSkill { .. }
            | Self::NoSuchModel { .. }
            | Self::Silent { .. }
            | Self::TooLarge { .. } => {}
        }
        self
    }

    pub(crate) fn unknown_model(detail: Detail) -> Self {
        Self::UnknownModel { name: String::new(), detail }
    }

    /// A vendor that does not know a model says so in words of its own; this
    /// says which one was asked for.
    pub(crate) fn of_model(self, model: &str) -> Self {
        match self {
            Self::UnknownModel { name, detail } if name.is_empty() => {
                Self::UnknownModel { name: model.chars().take(NAME_CHARS).collect(), detail }
            }
            other => other,
        }
    }

    /// The same failure, after part of the reply was given away.
    pub(crate) fn after_first_chunk(self) -> Self {
        match self {
            cut @ Self::Cut { .. } => cut,
            other => {
                let cause = other.detail().map(|d| format!(": {d}")).unwrap_or_default();
                Self::Cut { detail: Detail::new(format!("{other}{cause}")) }
            }
        }
    }
}

fn this_model(name: &str) -> String {
    match name {
        "" => "this model".to_owned(),
        name => format!("the model {name:?}"),
    }
}

fn known_list(known: &[String]) -> String {
    match known {
        [] => "No provider is configured".to_owned(),
        some => format!("Known providers: {}", some.join(", ")),
    }
}

fn able_list(able: &[String]) -> String {
    match able {
        [] => "No configured provider has".to_owned(),
        some => format!("These have: {}", some.join(", ")),
    }
}

fn models_list(known: &[String]) -> String {
    match known {
        [] => "No model is configured; name one as provider/model".to_owned(),
        some => format!("Known models: {}; others are named as provider/model", some.join(", ")),
    }
}

fn later(retry_after: &Option<Duration>) -> String {
    retry_after.map(|d| format!(", try again in {} s", d.as_secs_f32().ceil())).unwrap_or_default()
}
