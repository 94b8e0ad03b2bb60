//! A value that not every key may see. Hidden means absent, never `null`: a
//! tool may really return `null`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ts_rs::TS;

/// A field of class secret, tool or answer. In the store it is always shown;
/// [`crate::visible`] hides it on the way out.
///
/// Use with `#[serde(default, skip_serializing_if = "Guarded::is_hidden")]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Guarded<T> {
    Shown(T),
    #[default]
    Hidden,
}

impl<T> Guarded<T> {
    pub fn is_hidden(&self) -> bool {
        matches!(self, Self::Hidden)
    }
    pub fn shown(&self) -> Option<&T> {
        match self {
            Self::Shown(value) => Some(value),
            Self::Hidden => None,
        }
    }
    pub fn into_shown(self) -> Option<T> {
        match self {
            Self::Shown(value) => Some(value),
            Self::Hidden => None,
        }
    }
}

impl<T> From<T> for Guarded<T> {
    fn from(value: T) -> Self {
        Self::Shown(value)
    }
}

impl<T: Serialize> Serialize for Guarded<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Shown(value) => value.serialize(s),
            Self::Hidden => s.serialize_unit(),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Guarded<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        T::deserialize(d).map(Self::Shown)
    }
}

impl<T: JsonSchema> JsonSchema for Guarded<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<T>()
    }
}

impl<T: TS> TS for Guarded<T> {
    type WithoutGenerics = T::WithoutGenerics;
    type OptionInnerType = T;
    const IS_OPTION: bool = true;
    fn name(cfg: &ts_rs::Config) -> String {
        T::name(cfg)
    }
    fn inline(cfg: &ts_rs::Config) -> String {
        T::inline(cfg)
    }
    fn visit_dependencies(v: &mut impl ts_rs::TypeVisitor)
    where
        Self: 'static,
    {
        T::visit_dependencies(v);
    }
    fn visit_generics(v: &mut impl ts_rs::TypeVisitor)
    where
        Self: 'static,
    {
        T::visit_generics(v);
        v.visit::<T>();
    }
    fn decl(cfg: &ts_rs::Config) -> String {
        T::decl(cfg)
    }
    fn decl_concrete(cfg: &ts_rs::Config) -> String {
        T::decl_concrete(cfg)
    }
    fn inline_flattened(cfg: &ts_rs::Config) -> String {
        T::inline_flattened(cfg)
    }
}
