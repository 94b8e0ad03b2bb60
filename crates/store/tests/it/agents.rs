//! Agents, their versions and toolsets, by content hash.

use serde_json::{Value, json};
use toolyard_protocol::agent::execution::{Basic, Execution};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{IfAbsent, Place, ToolSpec, Toolset, Visibility};
use toolyard_protocol::{AgentId, AgentName, Hash, ToolName};
use toolyard_store::agents::{self, Agent, Upserted};

use crate::cast;
use crate::home::{Home, tx};

async fn upsert(home: &Home, name: &str, config: &Value) -> (Agent, Upserted) {
    let (tenant, name) = (cast::tenant(), AgentName::parse(name).unwrap());
    tx!(home, write, [tenant, name, config], |tx| agents::upsert(tx, &tenant, &name, &config).await)
}

async fn version(home: &Home, hash: &Hash) -> Option<Value> {
    let tenant = cast::tenant();
    tx!(home, read, [tenant, hash], |tx| agents::version(tx, &tenant, &hash).await)
}

pub(crate) async fn an_agent_keeps_its_id_and_its_old_versions(home: &Home) {
    let (first, second) = (json!({ "model": "demo" }), json!({ "model": "other" }));
    let (born, done) = upsert(home, "helper-bot", &first).await;
    assert_eq!(done, Upserted::Created);
    assert_eq!(born.hash, Hash::of_json(&first));

    let (same, done) = upsert(home, "helper-bot", &first).await;
    assert_eq!((same, done), (born.clone(), Upserted::Same));

    let (changed, done) = upsert(home, "helper-bot", &second).await;
    assert_eq!(done, Upserted::Changed);
    assert_eq!(changed.id, born.id);
    assert_eq!(changed.hash, Hash::of_json(&second));
    assert_eq!(version(home, &born.hash).await, Some(first.clone()));
    assert_eq!(version(home, &changed.hash).await, Some(second));

    // Back to the first: a version that exists is not stored twice.
    let (back, done) = upsert(home, "helper-bot", &first).await;
    assert_eq!((back.hash, done), (born.hash.clone(), Upserted::Changed));

    let (tenant, id) = (cast::tenant(), born.id.clone());
    for expected in [true, false] {
        let deleted = tx!(home, write, [tenant, id], |tx| agents::delete(tx, &tenant, &id).await);
        assert_eq!(deleted, expected);
    }
    assert_eq!(version(home, &born.hash).await, Some(first), "runs still point to it");
}

pub(crate) async fn agents_are_found_by_name_and_id_and_listed_by_name(home: &Home) {
    let tenant = cast::tenant();
    let mut all = Vec::new();
    for name in ["cook", "anna", "baker"] {
        all.push(upsert(home, name, &json!({ "name": name })).await.0);
    }
    let (name, id) = (all[0].name.clone(), all[1].id.clone());
    let unknown = AgentId::mint();
    let (by_name, by_id, none) = tx!(home, read, [tenant, name, id, unknown], |tx| {
        Ok((
            agents::by_name(tx, &tenant, &name).await?,
            agents::get(tx, &tenant, &id).await?,
            agents::get(tx, &tenant, &unknown).await?,
        ))
    });
    assert_eq!(by_name.as_ref(), Some(&all[0]));
    assert_eq!(by_id.as_ref(), Some(&all[1]));
    assert_eq!(none, None);
    let list = async |after: Option<&'static str>, limit: u32| {
        let rows = tx!(home, read, [tenant], |tx| agents::list(tx, &tenant, after, limit).await);
        rows.into_iter().map(|a| a.name.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 10).await, ["anna", "baker", "cook"]);
    assert_eq!(list(Some("anna"), 1).await, ["baker"]);
}

pub(crate) async fn a_toolset_is_stored_once_by_its_hash(home: &Home) {
    let tenant = cast::tenant();
    let tools = Toolset(vec![ToolSpec {
        name: ToolName::parse("get_location").unwrap(),
        description: "Where the user is.".to_owned(),
        input_schema: json!({ "type": "object" }),
        execution: Execution::Basic(Basic::default()),
        place: Place::Client,
        risk: Risk::Low,
        visibility: Visibility::Public,
        approval: None,
        answerers: None,
        timeout_ms: Some(5000),
        expires_ms: None,
        if_absent: IfAbsent::Wait,
        idempotent: false,
        trusted: false,
        service_id: None,
        deprecated: None,
        category: None,
        version: None,
        brought: None,
    }]);
    let (hash, other) = (tools.hash(), Toolset::default().hash());
    for _ in 0..2 {
        tx!(home, write, [tenant, hash, tools], |tx| agents::put_toolset(tx, &tenant, &hash, &tools).await);
    }
    let (found, none) = tx!(home, read, [tenant, hash, other], |tx| {
        Ok((agents::toolset(tx, &tenant, &hash).await?, agents::toolset(tx, &tenant, &other).await?))
    });
    assert_eq!(found, Some(tools));
    assert_eq!(none, None);
}
