//! What a provider can do beside talking.

use std::sync::Arc;

use secrecy::SecretString;
use toolyard_egress::{Door, Target};

use crate::embed::{self, Embed};
use crate::gemini::Gemini;
use crate::images::{self, Images};
use crate::openai::OpenAi;
use crate::providers::{BadProvider, ProviderKind};

#[derive(Debug, Clone, Default)]
pub(crate) struct Skills {
    pub(crate) embed: Option<Arc<dyn Embed>>,
    pub(crate) images: Option<Arc<dyn Images>>,
}

impl Skills {
    pub(crate) fn open(
        name: &str,
        kind: ProviderKind,
        base_url: Option<&str>,
        api_key: Option<&SecretString>,
        door: &Door,
    ) -> Result<Self, BadProvider> {
        let (door, key) = (door.clone(), api_key.cloned());
        let at = |vendor: &str| {
            Target::parse(base_url.unwrap_or(vendor))
                .map_err(|cause| BadProvider::Address { name: name.to_owned(), cause })
        };
        match kind {
            ProviderKind::Demo => {
                Ok(Self::of(embed::demo::DemoEmbed::new(name), images::demo::DemoImages::new(name)))
            }
            // One vendor with two wires for talking.
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses => {
                let base = at(OpenAi::BASE_URL)?;
                let embed = embed::openai::OpenAiEmbed::new(name, door.clone(), &base, key.clone());
                Ok(Self::of(embed, images::openai::OpenAiImages::new(name, door, &base, key)))
            }
            ProviderKind::Gemini => {
                let base = at(Gemini::BASE_URL)?;
                let embed = embed::gemini::GeminiEmbed::new(name, door.clone(), &base, key.clone());
                Ok(Self::of(embed, images::gemini::GeminiImages::new(name, door, &base, key)))
            }
            ProviderKind::Anthropic => Ok(Self::default()),
            ProviderKind::Bedrock => Self::bedrock(name, base_url, key, door),
        }
    }

    fn of(embed: impl Embed + 'static, images: impl Images + 'static) -> Self {
        Self { embed: Some(Arc::new(embed)), images: Some(Arc::new(images)) }
    }

    #[cfg(feature = "bedrock")]
    fn bedrock(
        name: &str,
        base_url: Option<&str>,
        key: Option<SecretString>,
        door: Door,
    ) -> Result<Self, BadProvider> {
        let (base, place) = crate::providers::bedrock_place(name, base_url.map(str::to_owned), key)?;
        let (region, access) = (place.region, place.access);
        let embed = embed::bedrock::BedrockEmbed::new(name, door.clone(), &base, &region, access.clone());
        Ok(Self::of(embed, images::bedrock::BedrockImages::new(name, door, &base, &region, access)))
    }

    #[cfg(not(feature = "bedrock"))]
    fn bedrock(_: &str, _: Option<&str>, _: Option<SecretString>, _: Door) -> Result<Self, BadProvider> {
        Ok(Self::default())
    }
}
