//! What the model calls a tool: `mcp_<server>_<tool>`, by a table. A name is
//! never taken apart to find its server: `_` occurs in both.

use std::collections::HashMap;

use toolyard_protocol::{Hash, ToolName, limits};

use crate::settings::ServerName;

/// Digits of the hash behind a name that had to change.
const DIGITS: usize = 8;

/// The names of `tools`, in their order. A name depends on its own tool alone,
/// unless two tools would have the same one.
pub(crate) fn assign(tools: &[(&ServerName, &str)]) -> Vec<ToolName> {
    let plain: Vec<(String, bool)> = tools.iter().map(|(server, raw)| plain(server, raw)).collect();
    let mut same: HashMap<&str, (usize, usize)> = HashMap::new();
    for (name, untouched) in &plain {
        let (all, exact) = same.entry(name).or_default();
        *all += 1;
        *exact += usize::from(*untouched);
    }
    plain
        .iter()
        .zip(tools)
        .map(|((name, untouched), (server, raw))| {
            let (all, exact) = same.get(name.as_str()).copied().unwrap_or_default();
            // Of several, the one that had this name all along keeps it.
            let keeps = all == 1 || (*untouched && exact == 1);
            let fits = name.len() <= limits::TOOL_NAME;
            if keeps && fits { parsed(name) } else { parsed(&marked(name, server, raw)) }
        })
        .collect()
}

/// The name with odd characters replaced, and whether none had to be.
fn plain(server: &ServerName, raw: &str) -> (String, bool) {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let tool: String = raw.chars().map(|c| if fine(c) { c } else { '_' }).collect();
    let untouched = tool == raw;
    (format!("mcp_{server}_{tool}"), untouched)
}

fn marked(name: &str, server: &ServerName, raw: &str) -> String {
    let hash = Hash::of_json(&serde_json::json!([server.as_str(), raw]));
    let digits = hash.as_str().get(..DIGITS).unwrap_or_default();
    let room = limits::TOOL_NAME - DIGITS - 1;
    let kept: String = name.chars().take(room).collect();
    format!("{kept}_{digits}")
}

fn parsed(name: &str) -> ToolName {
    ToolName::parse(name).unwrap_or_else(|_| ToolName::unnamed())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(tools: &[(&str, &str)]) -> Vec<String> {
        let servers: Vec<ServerName> = tools.iter().map(|(s, _)| ServerName::parse(s).unwrap()).collect();
        let tools: Vec<(&ServerName, &str)> =
            servers.iter().zip(tools).map(|(s, (_, raw))| (s, *raw)).collect();
        assign(&tools).iter().map(|name| name.as_str().to_owned()).collect()
    }

    #[test]
    fn x4_names_are_qualified_sanitised_and_unique() {
        assert_eq!(names(&[("files", "read")]), ["mcp_files_read"]);
        assert_eq!(names(&[("files", "weird name/1.x")]), ["mcp_files_weird_name_1_x"]);
        // One has the name by right, the other by sanitising.
        let two = names(&[("f", "a.b"), ("f", "a_b")]);
        assert_eq!(two[1], "mcp_f_a_b");
        assert!(two[0].starts_with("mcp_f_a_b_") && two[0].len() == "mcp_f_a_b_".len() + 8, "{two:?}");
        // Both by right: `a` + `b_c` and `a_b` + `c`.
        let split = names(&[("a", "b_c"), ("a_b", "c")]);
        assert!(split[0] != split[1] && split.iter().all(|n| n.starts_with("mcp_a_b_c_")), "{split:?}");
        let long = names(&[("s", &"x".repeat(100)), ("s", &"x".repeat(101)), ("s", "пр")]);
        assert!(long.iter().all(|n| n.len() <= 64), "{long:?}");
        assert_ne!(long[0], long[1]);
        assert_eq!(long[2], "mcp_s___");
    }

    #[test]
    fn a_new_server_does_not_rename_the_tools_of_another() {
        let alone = names(&[("a", "x"), ("a", &"y".repeat(90))]);
        let beside = names(&[("a", "x"), ("a", &"y".repeat(90)), ("b", "x")]);
        assert_eq!(alone[..], beside[..2]);
    }
}
