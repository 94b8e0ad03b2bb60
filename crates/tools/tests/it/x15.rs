//! X15: what an agent keeps for one person or space never reaches another.
//! Every prebuilt tool × every kind of caller; a tool without a row fails.

use serde_json::{Value, json};
use toolyard_protocol::{EntityId, SpaceId, TenantId};
use toolyard_tools::CallContext;
use toolyard_tools::prebuilt::{ACTIONS, Way};

use crate::home::Home;

/// Who looks, after the bot kept something for Ann in the den.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looker {
    AnnInDen,
    AnnInHall,
    AnnNowhere,
    BobInDen,
    BobInHall,
    EveInDen,
    NobodyInDen,
    NobodyNowhere,
    OtherAgentForAnn,
    OtherTenant,
}

use Looker::{
    AnnInDen, AnnInHall, AnnNowhere, BobInDen, BobInHall, EveInDen, NobodyInDen, NobodyNowhere,
    OtherAgentForAnn, OtherTenant,
};

const LOOKERS: [Looker; 10] = [
    AnnInDen,
    AnnInHall,
    AnnNowhere,
    BobInDen,
    BobInHall,
    EveInDen,
    NobodyInDen,
    NobodyNowhere,
    OtherAgentForAnn,
    OtherTenant,
];

impl Looker {
    fn call(self, home: &Home) -> CallContext {
        let call = |user: Option<&EntityId>, space: Option<&SpaceId>| home.call_for(user, space);
        let (den, hall) = (Some(&home.den), Some(&home.hall));
        match self {
            AnnInDen => call(Some(&home.ann), den),
            AnnInHall => call(Some(&home.ann), hall),
            AnnNowhere => call(Some(&home.ann), None),
            BobInDen => call(Some(&home.bob), den),
            BobInHall => call(Some(&home.bob), hall),
            EveInDen => call(Some(&home.eve), den),
            NobodyInDen => call(None, den),
            NobodyNowhere => call(None, None),
            OtherAgentForAnn => CallContext { agent_entity: Some(home.other_bot.clone()), ..home.anns() },
            OtherTenant => CallContext { tenant: TenantId::parse("umbrella").unwrap(), ..home.anns() },
        }
    }
}

/// Who gets the canary out of one tool.
async fn who_sees(home: &Home, action: &str, args: &Value) -> Vec<Looker> {
    let mut seeing = Vec::new();
    for looker in LOOKERS {
        let answer = home.act(&looker.call(home), action, args.clone()).await;
        // What is refused is not seen, and the refusal tells nothing either.
        if let Err(text) = &answer {
            assert!(!text.contains("canary"), "{action} {looker:?}: {text}");
        }
        if answer.is_ok_and(|value| value.to_string().contains("canary")) {
            seeing.push(looker);
        }
    }
    seeing
}

/// Who may look at all: whose calls are not refused.
async fn who_may(home: &Home, action: &str, args: &Value) -> Vec<Looker> {
    let mut may = Vec::new();
    for looker in LOOKERS {
        if home.act(&looker.call(home), action, args.clone()).await.is_ok() {
            may.push(looker);
        }
    }
    may
}

#[tokio::test]
async fn x15_every_prebuilt_tool_reads_and_writes_only_for_its_caller() {
    let home = Home::new().await;
    let anns = home.anns();
    let kept = async |action: &str, args: Value| home.act(&anns, action, args).await.unwrap();
    for action in ACTIONS {
        let seen = async |args: Value| who_sees(&home, action.name, &args).await;
        match action.name {
            // Goals are the agent's own, whomever it works for (G22), and no other agent's.
            "setGoals" => {
                kept("setGoals", json!({"goals": [{"description": "canary"}]})).await;
                let probe = seen(json!({"goals": []})).await;
                assert!(!probe.contains(&OtherAgentForAnn) && !probe.contains(&OtherTenant), "{probe:?}");
                assert_eq!(probe.len(), 8);
            }
            "getGoals" => {
                let probe = seen(json!({})).await;
                assert!(!probe.contains(&OtherAgentForAnn) && !probe.contains(&OtherTenant), "{probe:?}");
                assert_eq!(probe.len(), 8);
            }
            "setMemory" => {
                kept("setMemory", json!({"topic": "private", "content": "canary one"})).await;
                kept("setMemory", json!({"topic": "shared", "content": "canary two", "scope": "space"}))
                    .await;
                // Only the one it was written for can make the agent forget it.
                let gone = who_may(
                    &home,
                    "setMemory",
                    &json!({"topic": "private", "forget": true, "scope": "user"}),
                )
                .await;
                assert_eq!(gone, [AnnInDen]);
                let gone = who_may(
                    &home,
                    "setMemory",
                    &json!({"topic": "shared", "forget": true, "scope": "space"}),
                )
                .await;
                assert_eq!(gone, [AnnInDen]);
                kept("setMemory", json!({"topic": "private", "content": "canary one"})).await;
                kept("setMemory", json!({"topic": "shared", "content": "canary two", "scope": "space"}))
                    .await;
                // Bob's word on the same topic is his own row: Ann's stays as she said it.
                let bobs = BobInDen.call(&home);
                let said = json!({"topic": "shared", "content": "Bob's word", "scope": "space"});
                assert_eq!(home.act(&bobs, "setMemory", said).await.unwrap()["action"], "created");
                let anns_again = kept("getMemory", json!({"topic": "shared"})).await;
                assert_eq!(anns_again["total"], 2);
            }
            "getMemory" => {
                let private = seen(json!({"topic": "private"})).await;
                assert_eq!(private, [AnnInDen, AnnInHall, AnnNowhere]);
                let shared = seen(json!({"topic": "shared"})).await;
                assert_eq!(shared, [AnnInDen, BobInDen, NobodyInDen]);
            }
            "createPlan" => {
                kept("createPlan", json!({"name": "canary", "instruction": "canary", "cron": "0 9 * * *"}))
                    .await;
            }
            "getPlan" => {
                let probe = seen(json!({})).await;
                assert_eq!(probe, [AnnInDen, AnnInHall, AnnNowhere, BobInDen, NobodyInDen]);
            }
            "cancelPlan" => {
                let id = kept("getPlan", json!({})).await["plans"][0]["id"].clone();
                let mut others = LOOKERS.to_vec();
                others.retain(|l| !matches!(l, AnnInDen | AnnInHall | AnnNowhere));
                for looker in others {
                    let refused = home.act(&looker.call(&home), "cancelPlan", json!({"id": id})).await;
                    assert!(refused.is_err(), "{looker:?}");
                }
                kept("cancelPlan", json!({"id": id})).await;
            }
            "searchKnowledge" => {
                crate::knowledge::add(&home, Some(&home.den), "Den", "The canary sings in the den.").await;
                home.index().await;
                let probe = seen(json!({"query": "who sings"})).await;
                assert_eq!(probe, [AnnInDen, BobInDen, NobodyInDen, OtherAgentForAnn]);
            }
            "sendNotification" => {
                // To Bob: only out of a space that he is in.
                let args = json!({"title": "t", "message": "m", "entityId": home.bob, "channels": ["inbox"]});
                let probe = who_may(&home, "sendNotification", &args).await;
                assert_eq!(probe, [AnnInDen, BobInDen, BobInHall, NobodyInDen, OtherAgentForAnn]);
                let args = json!({"title": "t", "message": "m", "entityId": home.eve, "channels": ["inbox"]});
                assert_eq!(who_may(&home, "sendNotification", &args).await, [EveInDen]);
            }
            "getSpaceContext" => {
                // The agent and whom it works for are members, or nothing is told.
                let probe = who_may(&home, "getSpaceContext", &json!({})).await;
                assert_eq!(probe, [AnnInDen, AnnInHall, BobInDen, NobodyInDen, OtherAgentForAnn]);
            }
            "updateSpaceMetadata" => {
                let probe = who_may(&home, "updateSpaceMetadata", &json!({"metadata": {"n": 1}})).await;
                assert_eq!(probe, [AnnInDen, AnnInHall, BobInDen, NobodyInDen, OtherAgentForAnn]);
            }
            "requestInput" => assert!(matches!(action.way, Way::AskUser)),
            // It knows its own run alone: see the story of the gateway.
            "readResult" => assert!(matches!(action.way, Way::Read)),
            other => panic!("{other} has no row in this matrix"),
        }
    }
}
