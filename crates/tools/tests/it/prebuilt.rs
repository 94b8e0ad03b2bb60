//! G16, G17, G27 to G29: the registry, notifications and the space.

use serde_json::{Value, json};
use toolyard_protocol::tool::Toolset;
use toolyard_protocol::{NodeId, WebhookId, agent};
use toolyard_store::inbox;
use toolyard_store::runs::Owner;
use toolyard_store::secrets::Sealed;
use toolyard_store::webhooks::{self, Wanted, Webhook};
use toolyard_tools::prebuilt::{self, ACTIONS};

use crate::home::Home;

fn parsed(tools: Value) -> Toolset {
    let config = json!({"agent": {"name": "a"}, "model": {"name": "demo"}, "tools": tools});
    agent::parse(&config).unwrap().1
}

#[test]
fn g16_schema_and_description_are_filled_in_or_kept() {
    let own = json!({"type": "object", "properties": {"goals": {"type": "array"}}});
    let bare = json!({"executionType": "prebuilt", "execution": {"action": "setGoals"}});
    let said = json!({"name": "plan_day", "description": "Mine", "inputSchema": own, "executionType": "prebuilt", "execution": {"action": "setGoals"}});
    let empty = json!({"name": "e", "inputSchema": {"type": "object", "properties": {}}, "executionType": "prebuilt", "execution": {"action": "getGoals"}});
    let mut set = parsed(json!([bare, said, empty]));
    for (tool, has_schema) in set.0.iter_mut().zip([false, true, true]) {
        toolyard_tools::complete(tool, has_schema);
    }
    let default = prebuilt::find("setGoals").unwrap();
    assert_eq!(set.0[0].name.as_str(), "setGoals");
    assert_eq!(
        (set.0[0].description.as_str(), &set.0[0].input_schema),
        (default.description, &(default.schema)())
    );
    assert_eq!((set.0[1].description.as_str(), &set.0[1].input_schema), ("Mine", &own));
    assert_eq!(set.0[2].input_schema, json!({"type": "object", "properties": {}}));
    assert_eq!((default.schema)()["required"], json!(["goals"]));
    assert_eq!((default.schema)()["properties"]["goals"]["items"]["required"], json!(["description"]));
}

#[test]
fn g17_an_unknown_action_has_its_sentence() {
    let set = parsed(json!([{"executionType": "prebuilt", "execution": {"action": "makeCoffee"}}]));
    let refused = toolyard_tools::available(&set.0[0].execution);
    assert_eq!(refused, Err("Unknown prebuilt tool: makeCoffee".to_owned()));
    for action in ACTIONS {
        assert!(prebuilt::find(action.name).is_some());
        assert!(
            toolyard_schema::ToolSchema::compile(&(action.schema)(), &toolyard_schema::Limits::trusted())
                .is_ok()
        );
    }
    assert_eq!(prebuilt::find("queryKnowledge").unwrap().name, "searchKnowledge");
}

#[test]
fn the_switch_adds_what_is_not_there_and_refuses_a_taken_name() {
    let mut set =
        parsed(json!([{"name": "goals", "executionType": "prebuilt", "execution": {"action": "setGoals"}}]));
    prebuilt::add_all(&mut set).unwrap();
    assert_eq!(set.0.len(), ACTIONS.len());
    assert!(set.find("setGoals").is_none() && set.find("getGoals").is_some());
    let mut taken = parsed(json!([{"name": "getMemory", "description": "On a client"}]));
    assert!(prebuilt::add_all(&mut taken).unwrap_err().contains("getMemory"));
}

#[tokio::test]
async fn g24_a_memory_is_set_again_found_and_forgotten() {
    let home = Home::new().await;
    let anns = home.anns();
    let act = async |action: &str, args: Value| home.act(&anns, action, args).await;
    assert_eq!(
        act("setMemory", json!({"topic": "Coffee", "content": "black"})).await.unwrap()["action"],
        "created"
    );
    let again = act("setMemory", json!({"topic": "coffee", "content": "with milk"})).await.unwrap();
    assert_eq!(again["action"], "updated");
    act("setMemory", json!({"topic": "Tea", "content": "never"})).await.unwrap();
    let found = act("getMemory", json!({"query": "MILK"})).await.unwrap();
    assert_eq!((&found["total"], &found["memories"][0]["content"]), (&json!(1), &json!("with milk")));
    assert_eq!(found["memories"][0]["writtenFor"], json!(home.ann));
    assert_eq!(act("getMemory", json!({"topic": "coff"})).await.unwrap()["total"], 1);
    assert_eq!(act("getMemory", json!({})).await.unwrap()["total"], 2);
    assert_eq!(
        act("setMemory", json!({"topic": "COFFEE", "forget": true})).await.unwrap()["action"],
        "forgotten"
    );
    assert_eq!(
        act("setMemory", json!({"topic": "coffee", "forget": true})).await.unwrap_err(),
        "You remember nothing under \"coffee\""
    );
    assert_eq!(act("setMemory", json!({"topic": "x"})).await.unwrap_err(), "content must not be empty");
}

#[tokio::test]
async fn g27_a_repeated_call_notifies_once_on_every_channel() {
    let home = Home::new().await;
    let anns = home.anns();
    let tenant = home.tenant.clone();
    home.write(move |tx| {
        Box::pin(async move {
            let hook = Webhook {
                id: WebhookId::parse("whk_1").unwrap(),
                url: "https://example.org/hook".to_owned(),
                wanted: Wanted::default(),
                sealed: Sealed { bytes: vec![1], key_id: "k".to_owned() },
                created_at: tx.now().await?,
                last_at: None,
                last_status: None,
                failures: 0,
                given_up: 0,
            };
            webhooks::insert(tx, &tenant, &hook).await
        })
    })
    .await;
    let args = json!({"title": "Done", "message": "The report is ready", "level": "urgent"});
    for _ in 0..2 {
        let sent = home.act(&anns, "sendNotification", args.clone()).await.unwrap();
        assert_eq!(sent["channels"], json!(["inbox", "email", "webhook"]));
        assert_eq!(sent["entityId"], json!(home.ann));
    }
    let (tenant, ann) = (home.tenant.clone(), home.ann.clone());
    let (notices, parcels) = home
        .write(move |tx| {
            Box::pin(async move {
                let notices = inbox::list(tx, &tenant, Some(&ann), true, None, 10).await?;
                let later = tx.now().await?.plus_millis(1000);
                let me = Owner { node: NodeId::parse("a").unwrap(), incarnation: "1".to_owned() };
                let mut parcels = toolyard_store::outbox::take(tx, &me, later, 10).await?;
                parcels.sort_by(|a, b| a.kind.cmp(&b.kind));
                Ok((notices, parcels))
            })
        })
        .await;
    assert_eq!(notices.len(), 1);
    assert_eq!((notices[0].title.as_str(), notices[0].level.as_str()), ("Done", "urgent"));
    assert_eq!(parcels.iter().map(|p| p.kind.as_str()).collect::<Vec<_>>(), ["email", "webhook"]);
    assert_eq!(
        parcels[0].payload,
        json!({"to": "n2@example.org", "subject": "Done", "text": "The report is ready"})
    );
    assert_eq!(parcels[1].payload["type"], "notification");
    assert_eq!(parcels[1].payload["data"]["message"], "The report is ready");
    // The end of its id names the address that it goes to.
    assert!(parcels[1].id.ends_with(":whk_1"), "{}", parcels[1].id);
}

#[tokio::test]
async fn g28_g29_metadata_is_merged_within_its_limit() {
    let home = Home::new().await;
    let anns = home.anns();
    let update =
        async |metadata: Value| home.act(&anns, "updateSpaceMetadata", json!({"metadata": metadata})).await;
    let merged = update(json!({"mood": "calm", "n": {"deep": 1}})).await.unwrap();
    assert_eq!(merged["metadata"], json!({"colour": "blue", "mood": "calm", "n": {"deep": 1}}));
    let merged = update(json!({"colour": null, "n": 2})).await.unwrap();
    assert_eq!(merged["metadata"], json!({"mood": "calm", "n": 2}));
    let large = update(json!({"x": "y".repeat(20_000)})).await.unwrap_err();
    assert!(large.ends_with("the limit is 16384"), "{large}");
    let context = home.act(&anns, "getSpaceContext", json!({})).await.unwrap();
    assert_eq!(context["smartSpace"]["metadata"], json!({"mood": "calm", "n": 2}));
    let members = context["members"].as_array().unwrap();
    assert_eq!(members.len(), 4);
    let me = members.iter().find(|m| m["isYou"] == true).unwrap();
    assert_eq!((&me["entityId"], &me["type"]), (&json!(home.bot), &json!("agent")));
}
