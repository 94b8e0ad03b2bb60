//! Words of a vendor: types whose fields are all optional, and which keep the
//! fields that nobody here knows.
//!
//! `serde(flatten)` would do the same at several times the cost, since it
//! copies every field first. Here a field that we know is read as always, one
//! that is known to tell nothing is passed over, and only the rest is copied.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Fields that nobody here knows. Empty in almost every event, so it is small.
pub(crate) type Rest = Option<Box<Map<String, Value>>>;

/// Takes a field that is not read: passes it over, or keeps it. One without a
/// value tells nothing. It stands apart so that what is read stays small.
pub(crate) fn take_other<'de, A: MapAccess<'de>>(
    map: &mut A,
    name: Cow<'_, str>,
    passes: &[&str],
    rest: &mut Rest,
) -> Result<(), A::Error> {
    if passes.contains(&name.as_ref()) {
        return map.next_value::<IgnoredAny>().map(drop);
    }
    let value: Value = map.next_value()?;
    if !value.is_null() {
        rest.get_or_insert_default().insert(name.into_owned(), value);
    }
    Ok(())
}

/// The name of a field, borrowed where it can be.
pub(crate) struct Key<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }
    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Key(Cow::Borrowed(text)))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Key(Cow::Owned(text.to_owned())))
    }
}

/// A type of a vendor's words: `field: Type = "name"`. Each field is an
/// `Option`; a `null` and a missing one are the same. The names after `passes`
/// are known and tell nothing. What else comes is in `rest`.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident<$life:lifetime> {
        $($(#[$note:meta])* $field:ident: $kind:ty = $key:literal,)+
    } passes [$($pass:literal),* $(,)?]) => {
        $(#[$meta])*
        #[derive(Default)]
        pub(super) struct $name<$life> {
            $($(#[$note])* pub(super) $field: Option<$kind>,)+
            /// Unknown here.
            pub(super) rest: $crate::words::Rest,
            pub(super) marker: std::marker::PhantomData<&$life ()>,
        }

        impl<'de: $life, $life> serde::Deserialize<'de> for $name<$life> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields<$life>(std::marker::PhantomData<&$life ()>);
                impl<'de: $life, $life> serde::de::Visitor<'de> for Fields<$life> {
                    type Value = $name<$life>;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        let mut read = $name::default();
                        while let Some(key) = map.next_key::<$crate::words::Key<'de>>()? {
                            match key.0.as_ref() {
                                $($key => read.$field = map.next_value()?,)+
                                _ => {
                                    $crate::words::take_other(&mut map, key.0, &[$($pass),*], &mut read.rest)?;
                                }
                            }
                        }
                        Ok(read)
                    }
                }
                deserializer.deserialize_map(Fields(std::marker::PhantomData))
            }
        }
    };
}
pub(crate) use words;
