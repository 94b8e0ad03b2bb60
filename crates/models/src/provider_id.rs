//! The names that others give to vendors, in ours.

use std::borrow::Cow;

/// Short names for vendors that others call differently.
const SAME: [(&str, &str); 8] = [
    ("google", "gemini"),
    ("google-generative-ai", "gemini"),
    ("google-genai", "gemini"),
    ("claude", "anthropic"),
    ("amazon-bedrock", "bedrock"),
    ("aws-bedrock", "bedrock"),
    ("azure", "azure-openai"),
    ("openai-responses", "openai"),
];

/// The vendor behind a provider's id: `openai.responses` is `openai`,
/// `google.generative-ai` is `gemini`. An id that nobody knows is its own
/// name, without what follows the first dot.
pub fn normalise(id: &str) -> Cow<'_, str> {
    let vendor = id.trim().split('.').next().unwrap_or_default();
    match SAME.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(vendor)) {
        Some((_, ours)) => Cow::Borrowed(ours),
        None if vendor.bytes().any(|b| b.is_ascii_uppercase()) => Cow::Owned(vendor.to_ascii_lowercase()),
        None => Cow::Borrowed(vendor),
    }
}
