//! Pictures that need no vendor: a few coloured squares, chosen by the words.

use futures::FutureExt;
use futures::future::BoxFuture;
use toolyard_protocol::Hash;

use super::png::png;
use super::{Image, ImageRequest, Images};
use crate::call_error::CallError;

/// Squares of a side.
const SQUARES: u32 = 4;
/// Pixels of a side if the caller does not say.
const SIDE: u32 = 32;
/// The most pixels of a side: the file is not compressed.
const SIDE_MOST: u32 = 256;

/// The demo provider.
#[derive(Debug, Clone)]
pub struct DemoImages {
    name: String,
}

impl DemoImages {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }
}

impl Images for DemoImages {
    fn paint(&self, request: ImageRequest) -> BoxFuture<'_, Result<Vec<Image>, CallError>> {
        let painted = request.check().map(|()| (0..request.count).map(|n| paint(&request, n)).collect());
        futures::future::ready(painted).boxed()
    }

    fn provider(&self) -> &str {
        &self.name
    }

    fn usual_model(&self) -> &'static str {
        "demo"
    }
}

/// The same words give the same picture.
fn paint(request: &ImageRequest, number: u32) -> Image {
    let (width, height) = request.size.unwrap_or((SIDE, SIDE));
    let (width, height) = (width.min(SIDE_MOST), height.min(SIDE_MOST));
    let seed = Hash::of(format!("{number}:{}", request.prompt).as_bytes()).to_string();
    let seed: Vec<u8> = seed.bytes().filter(u8::is_ascii_hexdigit).collect();
    let colour = |x: u32, y: u32| {
        let square = (y * SQUARES / height) * SQUARES + x * SQUARES / width;
        let at = |n: usize| seed.get((square as usize * 3 + n) % seed.len().max(1)).copied().unwrap_or(0);
        [at(0), at(1), at(2)].map(|digit| (char::from(digit).to_digit(16).unwrap_or(0) * 17) as u8)
    };
    Image { media_type: "image/png", bytes: png(width, height, colour) }
}
