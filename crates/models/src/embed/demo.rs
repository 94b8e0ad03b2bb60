//! Embeddings that need no vendor: a bag of words, hashed into the dimensions.
//!
//! Texts with the same words are alike, texts without a common word are not.
//! That is enough to search a few notes and to test everything around it.

use futures::FutureExt;
use futures::future::BoxFuture;
use toolyard_protocol::run::Usage;

use super::{Embed, EmbedRequest, Embedded, to_unit_length};
use crate::call_error::CallError;

/// Numbers of a vector if the caller does not say.
const DIMENSIONS: u32 = 256;

/// The demo provider.
#[derive(Debug, Clone)]
pub struct DemoEmbed {
    name: String,
}

impl DemoEmbed {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }
}

impl Embed for DemoEmbed {
    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embedded, CallError>> {
        let embedded = request.check().map(|()| {
            let size = request.dimensions.unwrap_or(DIMENSIONS) as usize;
            let vectors = request.texts.iter().map(|text| vector(text, size)).collect();
            let words = request.texts.iter().map(|text| words(text).count() as u64).sum();
            Embedded { vectors, usage: Usage { input_tokens: words, ..Usage::default() } }
        });
        futures::future::ready(embedded).boxed()
    }

    fn provider(&self) -> &str {
        &self.name
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let spoken = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    spoken.map(str::to_lowercase)
}

fn vector(text: &str, size: usize) -> Vec<f32> {
    let mut vector = vec![0.0; size];
    let mut add = |word: &str| {
        let hash = fnv(word.as_bytes());
        let place = usize::try_from(hash % size as u64).unwrap_or(0);
        // Words that meet by chance cancel out as often as they add up.
        vector[place] += if hash >> 63 == 0 { 1.0 } else { -1.0 };
    };
    words(text).for_each(|word| add(&word));
    if vector.iter().all(|x| *x == 0.0) {
        // Signs without words, or words that cancelled out.
        let place = usize::try_from(fnv(text.as_bytes()) % size as u64).unwrap_or(0);
        vector[place] = 1.0;
    }
    to_unit_length(&mut vector);
    vector
}

/// FNV-1a with a last stir: the same on every machine and in every release,
/// which the standard hashers do not promise.
fn fnv(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
