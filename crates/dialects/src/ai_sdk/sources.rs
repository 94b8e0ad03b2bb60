//! What plugins say: the sources of an answer in the protocol's own parts, and
//! everything else as data.

use serde_json::json;
use toolyard_protocol::event::PluginEmitted;

use super::chunk::{Chunk, Voice};
use super::telling::ChatTelling;
use crate::citation::{self, Cited, Of};

/// Names of data parts that mean something of our own.
const OWN: [&str; 5] = ["child-asked", "input-required", "message-replaced", "permission-required", "plugin"];

impl<V: Voice> ChatTelling<V> {
    pub(super) fn emitted(&mut self, told: &PluginEmitted, out: &mut String) {
        self.open_message(out);
        match citation::of_event(told) {
            Some(cited) => self.cite(told, &cited, out),
            None => {
                let data = json!({ "plugin": told.plugin, "name": told.name, "value": told.value });
                self.voice.say(&Chunk::Data { name: "plugin", id: None, data, transient: true }, out);
            }
        }
    }

    /// The sources that the model did not name itself as parts, and all of them
    /// with their numbers as data.
    fn cite(&mut self, told: &PluginEmitted, cited: &[Cited<'_>], out: &mut String) {
        for one in cited {
            let chunk = match one.of {
                Of::Url(url) if !self.cited.insert(url.to_owned()) => continue,
                Of::Url(url) => Chunk::Source { id: one.id, url, title: one.title },
                Of::Document(file) => Chunk::Document { id: one.id, title: one.title.unwrap_or(file), file },
            };
            self.voice.say(&chunk, out);
        }
        let name = if OWN.contains(&told.name.as_str()) { "citation" } else { &told.name };
        let id = format!("{name}-{}", told.value["messageId"].as_str().unwrap_or_default());
        self.data(name, &id, told.value.clone(), out);
    }
}
