//! The plugin `time`: what time it is, here or elsewhere.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::plugin::{PluginBuilder, plugin};
use crate::tool::{CallContext, Failure, tool};

#[derive(Deserialize)]
struct Where {
    #[serde(default)]
    timezone: Option<String>,
}

#[expect(clippy::disallowed_methods, reason = "to tell the machine's time is what this tool is for")]
fn now() -> jiff::Zoned {
    jiff::Zoned::now()
}

/// `get_time`, in a time zone or in this machine's own.
pub fn time() -> PluginBuilder {
    let get_time = tool("get_time")
        .describe("Tells the date and the time, with the time zone.")
        .parameters(json!({
            "type": "object",
            "properties": { "timezone": {
                "type": "string",
                "description": "A name of the time zone database, such as Europe/Berlin. Missing means the machine's own.",
            } },
            "additionalProperties": false,
        }))
        .idempotent()
        .run(|Where { timezone }: Where, _cx: CallContext| async move {
            let here = now();
            let there = match timezone {
                None => here,
                Some(zone) => {
                    here.in_tz(&zone).map_err(|_| Failure::from(format!("unknown time zone: {zone}")))?
                }
            };
            Ok::<Value, Failure>(json!({
                "time": there.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
                "timezone": there.time_zone().iana_name().unwrap_or("local"),
                "weekday": there.strftime("%A").to_string(),
            }))
        });
    plugin("time", "1.0.0").tool(get_time)
}
