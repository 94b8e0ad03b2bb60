//! `searchKnowledge` (row G26), also called `queryKnowledge`. It reads before
//! the transaction of its result: a search takes its time.

use serde_json::{Value, json};
use toolyard_protocol::limits;

use super::{Action, Way};

pub(super) const SEARCH: Action = Action {
    name: "searchKnowledge",
    alias: Some("queryKnowledge"),
    description: "Search the documents of this knowledge base. Answers the best passages with their document ids, titles and positions, so that you can say where something is written.",
    schema,
    way: Way::Read,
};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "What you look for, in words or as a question."},
            "limit": {"type": "integer", "minimum": 1, "maximum": limits::SEARCH_RESULTS, "description": "Passages at most. 5 if missing."}
        },
        "required": ["query"]
    })
}
