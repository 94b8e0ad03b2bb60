//! Due plans over HTTP and over two gateways on one database.

use reqwest::Method;
use serde_json::{Value, json};
use toolyard_protocol::Timestamp;

use crate::database::Database;
use crate::gateway::{Folder, Gateway, ask, fine, message, now};
use crate::yard::{Yard, eventually};

fn in_seconds(seconds: u64) -> Timestamp {
    Timestamp::from_millis(i64::try_from((now() + seconds) * 1000).unwrap())
}

async fn plan_at(yard: &Yard, gateway: &Gateway, at: Timestamp) -> String {
    let plan = json!({"agentEntityId": yard.agent_entity, "entityId": yard.ann, "instruction": "hello", "scheduledAt": at});
    let made = gateway.post("/api/plans", plan).await;
    made["plan"]["id"].as_str().unwrap().to_owned()
}

async fn read(gateway: &Gateway, plan: &str) -> Value {
    gateway.get(&format!("/api/plans/{plan}")).await["plan"].clone()
}

#[tokio::test]
async fn two_gateways_start_each_due_plan_once() {
    let database = Database::postgres();
    let url = database.url.as_deref().unwrap();
    let yard = Yard::on(Gateway::start_with(Folder::new(), &[("TOOLYARD_DATABASE_URL", url)]).await).await;
    let other = Gateway::start_with(Folder::new(), &[("TOOLYARD_DATABASE_URL", url)]).await;
    // All at the same moment, so that both gateways reach for them at once.
    let at = in_seconds(3);
    let mut plans = Vec::new();
    for i in 0..12 {
        plans.push(plan_at(&yard, if i % 2 == 0 { &yard.gateway } else { &other }, at).await);
    }
    for plan in &plans {
        eventually("a run of the plan", async || read(&other, plan).await["lastRunId"].is_string()).await;
        let done = read(&yard.gateway, plan).await;
        assert_eq!((&done["runs"], &done["status"]), (&json!(1), &json!("completed")), "{done}");
        let space = done["smartSpaceId"].as_str().unwrap();
        let runs = other.get(&format!("/api/smart-spaces/{space}/runs")).await;
        assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
        assert_eq!(runs["runs"][0]["id"], done["lastRunId"]);
    }
    let runs = other.get("/api/runs?limit=200").await;
    assert_eq!(runs["runs"].as_array().unwrap().len(), plans.len());
}

#[tokio::test]
async fn a_plan_that_came_due_while_no_gateway_ran_starts_once() {
    let yard = Yard::new().await;
    let daily = json!({"agentEntityId": yard.agent_entity, "entityId": yard.ann, "instruction": "hello", "cron": "* * * * *"});
    let kept = yard.gateway.post("/api/plans", daily).await["plan"]["id"].as_str().unwrap().to_owned();
    let plan = plan_at(&yard, &yard.gateway, in_seconds(2)).await;
    let folder = yard.gateway.kill();
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let gateway = Gateway::start_with(folder, &[]).await;
    eventually("a run of the plan", async || read(&gateway, &plan).await["lastRunId"].is_string()).await;
    assert_eq!(read(&gateway, &plan).await["runs"], 1);
    let gone = gateway.secret(Method::DELETE, &format!("/api/plans/{kept}")).send().await.unwrap();
    assert_eq!(gone.status(), 204);
}

#[tokio::test]
async fn plans_are_made_changed_and_canceled_by_their_owners() {
    let yard = Yard::new().await;
    let (gateway, space) = (&yard.gateway, &yard.space);
    let body = |extra: Value| {
        let mut body =
            json!({"agentEntityId": yard.agent_entity, "smartSpaceId": space, "instruction": "Report"});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        body
    };
    let new = |body: Value| gateway.user("ann", Method::POST, "/api/plans").json(&body);
    let made = fine(new(body(json!({"cron": "0 9 * * 1", "timezone": "Europe/Berlin"})))).await;
    let plan = &made["plan"];
    assert_eq!(
        (&plan["entityId"], &plan["status"], &plan["isRecurring"]),
        (&json!(yard.ann), &json!("pending"), &json!(true))
    );
    let bad = [
        (body(json!({"cron": "whenever"})), 400, "Invalid cron pattern"),
        (body(json!({"cron": "* * * * *", "timezone": "Moon/Sea"})), 400, "Unknown time zone"),
        (body(json!({})), 400, "Say when"),
        (body(json!({"scheduledAt": "2001-01-01T00:00:00Z"})), 400, "lies in the past"),
        (body(json!({"cron": "* * * * *", "entityId": yard.bob})), 403, "belongs to another entity"),
        (body(json!({"cron": "* * * * *", "agentEntityId": yard.bob})), 404, "Agent entity not found"),
        (body(json!({"cron": "* * * * *", "smartSpaceId": null})), 400, "smartSpaceId"),
        (body(json!({"cron": "* * * * *", "instruction": "x".repeat(8001)})), 422, "at most 8000"),
    ];
    for (body, status, text) in bad {
        let (got, said) = ask(new(body.clone())).await;
        assert_eq!(got.as_u16(), status, "{body}: {said}");
        assert!(message(&said).contains(text), "{said}");
    }
    let path = format!("/api/plans/{}", plan["id"].as_str().unwrap());
    let patch = |user: &str, body: Value| gateway.user(user, Method::PATCH, &path).json(&body);
    assert_eq!(ask(patch("bob", json!({"status": "canceled"}))).await.0, 403);
    let changed = fine(patch("ann", json!({"name": "Weekly", "timezone": "UTC"}))).await;
    assert_eq!((&changed["plan"]["name"], &changed["plan"]["timezone"]), (&json!("Weekly"), &json!("UTC")));
    assert_ne!(changed["plan"]["nextRunAt"], plan["nextRunAt"]);
    let canceled = fine(patch("ann", json!({"status": "canceled"}))).await;
    assert_eq!(
        (&canceled["plan"]["status"], &canceled["plan"]["nextRunAt"]),
        (&json!("canceled"), &json!(null))
    );
    let list = fine(gateway.user("ann", Method::GET, "/api/plans?status=canceled")).await;
    assert_eq!(list["plans"].as_array().unwrap().len(), 1);
    assert_eq!(fine(gateway.user("bob", Method::GET, "/api/plans")).await["plans"], json!([]));
    let revived = fine(patch("ann", json!({"cron": "0 8 * * *"}))).await;
    assert_eq!(revived["plan"]["status"], "pending");
    let gone = gateway.user("ann", Method::DELETE, &path).send().await.unwrap();
    assert_eq!(gone.status(), 204);
}
