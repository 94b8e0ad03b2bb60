//! The durable facts of a run. State is a fold over these, and nothing else.
//!
//! Fields are only ever added, with defaults. A plain field is public (P); a
//! [`Guarded`] field is secret (S), follows its tool (T), or is for those who
//! may answer (A). [`crate::visible`] decides; it does not compile until a new
//! field has a class.

/// An event, or a part of one, as the log has it.
macro_rules! event {
    ($(#[$doc:meta])* $name:ident { $($body:tt)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
        #[serde(rename_all = "camelCase")]
        #[ts(optional_fields)]
        pub struct $name { $($body)* }
    };
}

mod birth;
mod codec;
mod hooked;
mod kinds;

pub use birth::*;
pub use codec::Undecodable;
pub use hooked::*;
pub use kinds::*;

macro_rules! events {
    ($($name:ident),* $(,)?) => {
        /// One durable event.
        #[derive(Debug, Clone, PartialEq)]
        #[expect(clippy::large_enum_variant, reason = "the large one is the first of every log, and there is one")]
        pub enum Event { $($name($name),)* }

        $(impl From<$name> for Event {
            fn from(e: $name) -> Self { Self::$name(e) }
        })*

        impl Event {
            /// Names of all event types.
            pub const KINDS: &'static [&'static str] = &[$(stringify!($name),)*];

            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$name(_) => stringify!($name),)* }
            }
            /// The stored form: `{"v":1,"type":…,…}`.
            pub fn encode(&self) -> String {
                match self { $(Self::$name(e) => codec::encode(stringify!($name), e),)* }
            }
            /// Reads the stored form. An unknown type is an error, never skipped.
            pub fn decode(text: &str) -> Result<Self, Undecodable> {
                let head = codec::head(text)?;
                match head.kind.as_ref() {
                    $(stringify!($name) => codec::body(text, stringify!($name)).map(Self::$name),)*
                    other => Err(Undecodable::Unknown { kind: other.to_owned(), v: head.v }),
                }
            }
            /// The JSON Schema of every stored form, by type name.
            pub fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
                vec![$((stringify!($name), generator.subschema_for::<$name>()),)*]
            }
            /// The TypeScript declaration of every event, by type name.
            pub fn typescript(cfg: &ts_rs::Config) -> Vec<(&'static str, String)> {
                vec![$((stringify!($name), <$name as ts_rs::TS>::inline(cfg)),)*]
            }
            /// Shows the TypeScript types that events are made of.
            pub fn visit_parts(visitor: &mut impl ts_rs::TypeVisitor) {
                $(<$name as ts_rs::TS>::visit_dependencies(visitor);
                <$name as ts_rs::TS>::visit_generics(visitor);)*
            }
        }
    };
}

events!(
    RunCreated,
    RunStarted,
    StepRestarted,
    ModelReplied,
    Asked,
    Answered,
    ToolCallRequested,
    ToolProgressed,
    ToolReturned,
    ReplyAmended,
    ResultAmended,
    ToolsetReplaced,
    ChildStarted,
    ChildAsked,
    ChildAnswered,
    MessageQueued,
    MessageTaken,
    CancelRequested,
    HistoryCompacted,
    PluginEmitted,
    PluginStateSaved,
    RunPaused,
    RunFinished,
);
