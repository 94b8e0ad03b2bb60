//! The tables of a tenant. One that nobody removes is found by a test.

/// Removes some rows of a table by its key.
macro_rules! piece {
    ($table:literal, $key:literal, $most:literal) => {
        (
            $table,
            concat!(
                "DELETE FROM ",
                $table,
                " WHERE tenant = $1 AND (",
                $key,
                ") IN (SELECT ",
                $key,
                " FROM ",
                $table,
                " WHERE tenant = $1 LIMIT ",
                $most,
                ")"
            ),
        )
    };
}

/// Every table that names a tenant, and how a piece of it is removed: keys and
/// runs first, so that nobody comes in and nobody works on.
pub const OF_TENANTS: &[(&str, &str)] = &[
    piece!("keys", "id", "200"),
    piece!("runs", "id", "200"),
    piece!("waits", "run, id", "200"),
    piece!("plans", "id", "200"),
    piece!("outbox", "id", "200"),
    piece!("webhooks", "id", "200"),
    piece!("push_configs", "run, id", "200"),
    piece!("presences", "connection", "200"),
    piece!("presence_tools", "tool, connection", "200"),
    piece!("clients", "id", "200"),
    piece!("events", "run, seq", "200"),
    piece!("remains", "run", "200"),
    piece!("messages", "space, pos", "100"),
    piece!("message_names", "space, name", "500"),
    piece!("branches", "space, id", "500"),
    piece!("compactions", "space, branch, agent_entity, up_to", "200"),
    piece!("members", "space, entity", "500"),
    piece!("spaces", "id", "200"),
    piece!("files", "id", "200"),
    piece!("blob_uses", "run, hash", "500"),
    piece!("blobs", "hash", "4"),
    piece!("grants", "id", "200"),
    piece!("goals", "id", "200"),
    piece!("memories", "id", "200"),
    piece!("inbox", "id", "200"),
    piece!("documents", "id", "200"),
    piece!("document_texts", "document", "8"),
    (
        "chunks",
        "DELETE FROM chunks WHERE tenant = $1 AND row IN (SELECT row FROM chunks WHERE tenant = $1 ORDER BY row LIMIT 200)",
    ),
    piece!("mcp_pins", "server, tool", "200"),
    piece!("mcp_records", "entity, server, record", "200"),
    piece!("mcp_logins", "state", "200"),
    piece!("mcp_locks", "entity, server", "200"),
    piece!("secrets", "name", "200"),
    piece!("agents", "id", "200"),
    piece!("agent_versions", "hash", "50"),
    piece!("toolsets", "hash", "50"),
    piece!("agent_usage", "agent, day", "500"),
    piece!("tool_uses", "agent, tool", "500"),
    piece!("curators", "id", "200"),
    piece!("curator_keys", "id", "200"),
    piece!("plugins", "id", "20"),
    piece!("plugin_versions", "plugin, version", "20"),
    piece!("plugin_pins", "plugin", "200"),
    piece!("plugin_revocations", "kind, target, version", "200"),
    piece!("entities", "id", "200"),
    piece!("idempotency", "caller, route, key", "200"),
    piece!("removals", "kind, target", "200"),
    piece!("audit", "id", "500"),
];
