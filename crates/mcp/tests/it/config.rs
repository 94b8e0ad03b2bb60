//! Servers in the operator's file, in the `mcpServers` form and in agents.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use toolyard_mcp::{Entry, Launch, Origin, ServerSettings, Sharing, read_entries, read_file_form};
use toolyard_protocol::TenantId;
use toolyard_protocol::agent::McpServer;

fn refusal(name: &str, entry: Value) -> String {
    let entry: Entry = serde_json::from_value(entry).unwrap();
    read_entries(&BTreeMap::from([(name.to_owned(), entry)]), &|_| None).unwrap_err().to_string()
}

#[test]
fn the_form_of_other_hosts_is_read() {
    let text = json!({ "mcpServers": {
        "files": { "command": "npx", "args": ["-y", "server", "${HOME}/x", "${NOPE:-fallback}"], "env": { "A": "${HOME}" } },
        "web": { "type": "http", "url": "https://example.com/mcp", "headers": { "X-Key": "${KEY}" }, "allowedTools": ["a"] },
        "off": { "type": "streamable-http", "url": "https://example.com", "disabled": true, "bearer_token_env_var": "KEY" },
    } });
    let lookup = |name: &str| match name {
        "HOME" => Some("/data/x".to_owned()),
        "KEY" => Some("k-1".to_owned()),
        _ => None,
    };
    let servers = read_file_form(&text.to_string(), &lookup).unwrap();
    let Launch::Stdio(program) = &servers[0].launch else { panic!() };
    assert_eq!(
        (program.command.as_str(), &program.args[..]),
        ("npx", &["-y", "server", "/data/x/x", "fallback"].map(str::to_owned)[..])
    );
    assert_eq!(
        (servers[0].name.as_str(), servers[0].sharing, servers[0].enabled),
        ("files", Sharing::Shared, true)
    );
    let Launch::Http(off) = &servers[1].launch else { panic!() };
    assert_eq!((off.headers["authorization"].expose_secret(), servers[1].enabled), ("Bearer k-1", false));
    let Launch::Http(web) = &servers[2].launch else { panic!() };
    assert_eq!((web.headers["x-key"].expose_secret(), servers[2].sharing), ("k-1", Sharing::Shared));
    assert!(servers[2].offers("a") && !servers[2].offers("b"));
    // Nothing of it is printed.
    assert!(!format!("{servers:?}").contains("k-1"));
}

/// X6: a server of the operator is for the tenants that it names, and what one
/// of several does there is not seen by the next.
#[test]
fn x6_tenants_are_let_in_by_name() {
    let read = |entry: Value| {
        let entry: Entry = serde_json::from_value(entry).unwrap();
        read_entries(&BTreeMap::from([("s".to_owned(), entry)]), &|_| None).unwrap().remove(0)
    };
    let (default, acme) = (TenantId::default_tenant(), TenantId::parse("acme").unwrap());
    let seen = |s: &ServerSettings| (s.tenants.has(&default), s.tenants.has(&acme), s.sharing);
    assert_eq!(seen(&read(json!({ "command": "a" }))), (true, false, Sharing::Shared));
    let both = json!({ "command": "a", "tenants": ["default", "acme"] });
    assert_eq!(seen(&read(both)), (true, true, Sharing::Tenant));
    let one = json!({ "command": "a", "tenants": ["acme"], "sharing": "shared" });
    assert_eq!(seen(&read(one)), (false, true, Sharing::Shared));
    assert_eq!(seen(&read(json!({ "url": "https://x", "tenants": ["*"] }))), (true, true, Sharing::User));
    let refused = refusal("s", json!({ "command": "a", "tenants": ["acme", "a b"] }));
    assert!(refused.starts_with("s.tenants[1]: \"a b\" is not"), "{refused}");
}

#[test]
fn x17_bad_servers_are_refused_with_their_path() {
    for (entry, path) in [
        (json!({}), "s.command: is required, or url"),
        (json!({ "command": "a", "url": "https://x" }), "s.url: stands beside command"),
        (json!({ "command": " " }), "s.command: must not be empty"),
        (json!({ "command": "a", "type": "http" }), "s.type: says http"),
        (json!({ "url": "https://x", "type": "stdio" }), "s.type: says stdio"),
        (json!({ "url": "ftp://x" }), "s.url: the address must start with http"),
        (json!({ "url": "https://u:p@x" }), "s.url: the address must not contain a user name"),
        (json!({ "url": "https://x", "args": ["a"] }), "s.args: "),
        (json!({ "command": "a", "headers": { "x": "y" } }), "s.headers: "),
        (
            json!({ "url": "https://x", "headers": { "Mcp-Session-Id": "y" } }),
            "s.headers.Mcp-Session-Id: is written by the protocol",
        ),
        (json!({ "url": "https://x", "headers": { "a b": "y" } }), "s.headers.a b: is not the name"),
        (json!({ "url": "https://x", "headers": { "a": "y\r\nz: 1" } }), "s.headers.a: has characters"),
        (
            json!({ "command": "a", "env": { "LD_PRELOAD": "x" } }),
            "s.env.LD_PRELOAD: makes a program load other code",
        ),
        (json!({ "command": "a", "env": { "node_options": "x" } }), "s.env.node_options: makes a program"),
        (json!({ "command": "a", "env": { "A=B": "x" } }), "s.env.A=B: is not the name"),
        (
            json!({ "command": "a", "env_vars": ["TOOLYARD_SECRET_KEY"] }),
            "s.env_vars[0]: TOOLYARD_SECRET_KEY belongs to the gateway",
        ),
        (json!({ "command": "a", "args": ["${NOPE}"] }), "s.args[0]: the variable NOPE is not set"),
        (json!({ "command": "a", "args": ["${NOPE"] }), "s.args[0]: has a ${ without"),
        (
            json!({ "command": "a", "startup_timeout_sec": 0 }),
            "s.startup_timeout_sec: must be more than 0 and at most 86400",
        ),
        (
            json!({ "url": "https://x", "bearer_token_env_var": "NOPE" }),
            "s.bearer_token_env_var: NOPE is not set",
        ),
    ] {
        let text = refusal("s", entry);
        assert!(text.starts_with(path), "{text}");
    }
    assert!(
        refusal("a b", json!({ "command": "a" })).starts_with("a b.name: must start with a letter or digit")
    );
    let two = json!({ "mcpServers": { "my-files": { "command": "a" }, "My_Files": { "command": "a" } } });
    let text = read_file_form(&two.to_string(), &|_| None).unwrap_err().to_string();
    assert!(text.contains("same names"), "{text}");
    let misspelt = json!({ "mcpServers": { "s": { "comand": "a" } } });
    let text = read_file_form(&misspelt.to_string(), &|_| None).unwrap_err().to_string();
    assert!(text.starts_with("mcpServers.s.comand: unknown field"), "{text}");
}

fn of_agent(server: Value, operator: &[ServerSettings]) -> Result<ServerSettings, String> {
    let server: McpServer = serde_json::from_value(server).unwrap();
    let reveal = |text: &str| match text {
        "${secret.NOPE}" => Err("there is no secret NOPE".to_owned()),
        text => Ok(SecretString::from(text.replace("${secret.K}", "k-2"))),
    };
    ServerSettings::of_agent(&server, operator, &reveal).map_err(|e| e.to_string())
}

/// Row X17: an agent cannot bring a command, only name the operator's server,
/// which it may narrow and not widen.
#[test]
fn x17_an_agent_narrows_the_operators_server_and_brings_no_command() {
    let entry: Entry =
        serde_json::from_value(json!({ "command": "a", "allowed_tools": ["read", "list"] })).unwrap();
    let operator = read_entries(&BTreeMap::from([("files".to_owned(), entry)]), &|_| None).unwrap();
    let named = of_agent(json!({ "name": "files", "allowedTools": ["read", "write"], "required": true, "timeoutMs": 5, "trusted": true }), &operator).unwrap();
    assert!(named.offers("read") && !named.offers("write") && !named.offers("list"));
    assert_eq!((named.required, named.trusted, named.idle.as_millis()), (true, false, 5));
    assert_eq!(
        of_agent(json!({ "name": "nobody" }), &operator).unwrap_err(),
        "name: the operator has no MCP server nobody; a remote one needs a url"
    );
    let with_command = json!({ "name": "x", "url": "https://x", "command": "rm" });
    assert!(
        serde_json::from_value::<McpServer>(with_command)
            .unwrap_err()
            .to_string()
            .contains("unknown field `command`")
    );
    let remote = of_agent(
        json!({ "name": "web", "url": "https://x/mcp", "headers": { "Key": "${secret.K}" } }),
        &operator,
    )
    .unwrap();
    let Launch::Http(http) = &remote.launch else { panic!() };
    assert_eq!(
        (http.headers["key"].expose_secret(), remote.origin, remote.sharing),
        ("k-2", Origin::Agent, Sharing::User)
    );
    let text = of_agent(
        json!({ "name": "web", "url": "https://x", "headers": { "Key": "${secret.NOPE}" } }),
        &operator,
    )
    .unwrap_err();
    assert_eq!(text, "headers.Key: there is no secret NOPE");
}
