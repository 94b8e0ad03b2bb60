//! What every vendor can do.

use std::fmt;

use futures::stream::BoxStream;

use crate::chunk::Chunk;
use crate::error::ModelError;
use crate::request::Request;

/// A reply on its way. Dropping it stops the vendor.
pub type ModelStream = BoxStream<'static, Result<Chunk, ModelError>>;

/// A model provider. Nothing happens before the stream is polled.
///
/// The provider repeats a failed request by itself, but only while it has
/// given no chunk away. After the first chunk every failure is
/// [`ModelError::Cut`].
pub trait Model: Send + Sync + fmt::Debug {
    fn stream(&self, request: Request) -> ModelStream;
    /// The name it is configured under.
    fn provider(&self) -> &str;
}
