//! The names that others give to vendors, in ours.

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
pub fn normalise(id: &str) -> String {
    let id = id.trim().to_ascii_lowercase();
    let vendor = id.split('.').next().unwrap_or_default();
    match SAME.iter().find(|(theirs, _)| *theirs == vendor) {
        Some((_, ours)) => (*ours).to_owned(),
        None => vendor.to_owned(),
    }
}
