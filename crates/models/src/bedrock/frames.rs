//! Cuts Amazon's event stream into frames. No IO.
//!
//! A frame carries checksums of itself. One that does not match means that
//! bytes were lost or changed on the way, so the stream counts as cut there:
//! nothing after it can be trusted.

use aws_smithy_eventstream::frame::{DecodedFrame, MessageFrameDecoder};
use aws_smithy_types::event_stream::Message;
use bytes::{Buf, BytesMut};

use crate::error::{Detail, ModelError};
use crate::wire::EVENT_BYTES;

/// Bytes before the headers: two lengths and a checksum.
const PRELUDE: usize = 12;

/// One frame, with the headers that we know.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    /// What happened: the type of the event, exception or error.
    pub(super) name: String,
    /// The text of an error; events and exceptions have it in their payload.
    pub(super) message: String,
    pub(super) payload: bytes::Bytes,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Event,
    /// An error that the service's model names.
    Exception,
    /// Any other error.
    Error,
    /// Not of this protocol; skipped.
    #[default]
    Unknown,
}

/// Collects bytes until a frame is whole.
#[derive(Debug, Default)]
pub(super) struct Frames {
    buffer: BytesMut,
}

impl Frames {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if it is here.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, ModelError> {
        if self.buffer.len() < PRELUDE {
            return Ok(None);
        }
        let length = (&self.buffer[..]).get_u32() as usize;
        // Also the end of a stream whose first bytes are no frame at all: it
        // must not wait for gigabytes.
        if length > EVENT_BYTES {
            return Err(ModelError::TooLarge { limit: EVENT_BYTES as u64 });
        }
        if length < PRELUDE {
            return Err(cut("a frame is shorter than its own head"));
        }
        if self.buffer.len() < length {
            return Ok(None);
        }
        let whole = self.buffer.split_to(length).freeze();
        match MessageFrameDecoder::new().decode_frame(whole) {
            Ok(DecodedFrame::Complete(message)) => Ok(Some(read(&message))),
            Ok(DecodedFrame::Incomplete) => Err(cut("a frame is shorter than it says")),
            Err(why) => Err(cut(&why.to_string())),
        }
    }
}

fn cut(why: &str) -> ModelError {
    ModelError::Cut { detail: Detail::new(format!("event stream: {why}")) }
}

fn read(message: &Message) -> Frame {
    let mut frame = Frame { payload: message.payload().clone(), ..Frame::default() };
    for header in message.headers() {
        let Ok(value) = header.value().as_string() else { continue };
        let value = value.as_str();
        match header.name().as_str() {
            ":message-type" => {
                frame.kind = match value {
                    "event" => Kind::Event,
                    "exception" => Kind::Exception,
                    "error" => Kind::Error,
                    _ => Kind::Unknown,
                };
            }
            ":event-type" | ":exception-type" | ":error-code" => frame.name = value.to_owned(),
            ":error-message" => frame.message = value.to_owned(),
            _ => {}
        }
    }
    frame
}
