//! Citations in the event of a plugin. Whatever plugin says it and under
//! whatever name: a value with a list of `citations` is one, and every dialect
//! has a form of its own for it.

use serde_json::Value;
use toolyard_protocol::event::PluginEmitted;
use toolyard_protocol::message::Part;

/// One source of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cited<'a> {
    pub(crate) id: &'a str,
    pub(crate) of: Of<'a>,
    pub(crate) title: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of<'a> {
    Url(&'a str),
    Document(&'a str),
}

/// The citations of an event, if it is one. Entries that are none are left out.
pub(crate) fn of_event(event: &PluginEmitted) -> Option<Vec<Cited<'_>>> {
    let list = event.value.get("citations")?.as_array()?;
    let cited: Vec<Cited<'_>> = list.iter().filter_map(cited).collect();
    (!cited.is_empty()).then_some(cited)
}

fn cited(entry: &Value) -> Option<Cited<'_>> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let of = match (text("url"), text("documentId")) {
        (Some(url), _) => Of::Url(url),
        (None, Some(document)) => Of::Document(document),
        (None, None) => return None,
    };
    Some(Cited { id: text("id")?, of, title: text("title") })
}

/// The annotation that OpenAI's protocols have for a source.
pub(crate) fn annotation(part: &Part) -> Option<Value> {
    let Part::Source { id: _, url, title, start_index, end_index } = part else { return None };
    Some(serde_json::json!({
        "url": url,
        "title": title.as_deref().unwrap_or(url),
        "start_index": start_index.unwrap_or(0),
        "end_index": end_index.unwrap_or(0),
    }))
}
