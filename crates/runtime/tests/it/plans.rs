//! Due plans become runs, once each.

use serde_json::json;
use toolyard_protocol::message::{Speaker, text_of};
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::{EntityId, PlanId, RunId, SpaceId, Timestamp};
use toolyard_store::plans::{self, Plan, PlanStatus};
use toolyard_store::runs::RunRow;
use toolyard_store::{StoreError, runs, spaces};

use crate::prebuilt::{outcomes, prebuilt};
use crate::yard::{Yard, client_tool, static_tool};

/// A plan that came due a while ago.
async fn plan(yard: &Yard, space: Option<&SpaceId>, instruction: &str, cron: Option<&str>) -> Plan {
    let plan = Plan {
        tenant: yard.tenant.clone(),
        id: PlanId::mint(),
        agent: yard.bot.clone(),
        creator: Some(yard.ada.clone()),
        space: space.cloned(),
        name: "Report".to_owned(),
        instruction: instruction.to_owned(),
        cron: cron.map(str::to_owned),
        timezone: "UTC".to_owned(),
        scheduled_at: None,
        next_run_at: Some(Timestamp::from_millis(1_600_000_000_000)),
        last_run_at: None,
        last_run: None,
        runs: 0,
        status: PlanStatus::Pending,
        error: None,
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
    };
    let stored = plan.clone();
    let write = yard.rt.store().write(move |tx| Box::pin(async move { plans::insert(tx, &stored).await }));
    write.await.unwrap();
    plan
}

async fn read(yard: &Yard, plan: &Plan) -> Plan {
    let (tenant, id) = (plan.tenant.clone(), plan.id.clone());
    let read = yard.rt.store().read(move |tx| Box::pin(async move { plans::get(tx, &tenant, &id).await }));
    read.await.unwrap().unwrap()
}

/// Waits until the plan is not due any more.
async fn moved(yard: &Yard, plan: &Plan) -> Plan {
    for _ in 0..2_000 {
        let now = read(yard, plan).await;
        if now.next_run_at != plan.next_run_at {
            return now;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("the plan stays due");
}

async fn all_runs(yard: &Yard) -> Vec<RunRow> {
    let tenant = yard.tenant.clone();
    let read = yard
        .rt
        .store()
        .read(move |tx| Box::pin(async move { runs::list(tx, &tenant, None, None, None, 100).await }));
    read.await.unwrap()
}

#[tokio::test]
async fn g25_a_due_plan_runs_once_for_its_creator_in_its_space() {
    let yard = Yard::new(json!([static_tool("look")])).await;
    let due = plan(&yard, Some(&yard.space), "call look {}", None).await;
    let done = moved(&yard, &due).await;
    assert_eq!((done.status, done.runs, done.next_run_at), (PlanStatus::Completed, 1, None));
    let run = done.last_run.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(outcomes(&yard, &run).await.len(), 1);
    let rows = all_runs(&yard).await;
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0].triggered_by, &rows[0].space), (&Some(yard.ada.clone()), &Some(yard.space.clone())));
    let said = &yard.messages().await[0];
    // Not the gateway's word and not Ada's.
    assert_eq!((said.speaker, &said.entity), (Speaker::User, &None));
    assert_eq!(text_of(&said.parts), "[Plan that is due: Report]\ncall look {}");
}

#[tokio::test]
async fn missed_occurrences_are_one_run() {
    let yard = Yard::new(json!([])).await;
    // Years of minutes.
    let due = plan(&yard, Some(&yard.space), "hello", Some("* * * * *")).await;
    let next = moved(&yard, &due).await;
    assert_eq!((next.status, next.runs), (PlanStatus::Pending, 1));
    let ahead = next.next_run_at.unwrap().since(next.updated_at);
    assert!((1..=60_000).contains(&ahead), "{ahead}");
    let run = next.last_run.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(all_runs(&yard).await.len(), 1);
}

#[tokio::test]
async fn a_plan_without_a_space_gets_its_own_and_keeps_it() {
    let yard = Yard::new(json!([])).await;
    let due = plan(&yard, None, "hello", Some("0 0 1 1 *")).await;
    let next = moved(&yard, &due).await;
    yard.until(&next.last_run.clone().unwrap(), RunStatus::Completed).await;
    let space = next.space.clone().unwrap();
    assert_ne!(space, yard.space);
    let tenant = yard.tenant.clone();
    let (asked, again) =
        (space.clone(), Plan { next_run_at: Some(Timestamp::from_millis(5)), ..next.clone() });
    let before = next.next_run_at;
    let read = yard.rt.store().write(move |tx| {
        Box::pin(async move {
            plans::replace(tx, &again, PlanStatus::Pending, before).await?;
            spaces::members(tx, &tenant, &asked).await
        })
    });
    let members: Vec<EntityId> = read.await.unwrap().into_iter().map(|m| m.entity).collect();
    assert!(members.len() == 2 && members.contains(&yard.ada) && members.contains(&yard.bot));
    let due_again = Plan { next_run_at: Some(Timestamp::from_millis(5)), ..next };
    let twice = moved(&yard, &due_again).await;
    assert_eq!((twice.runs, twice.space), (2, Some(space)));
}

#[tokio::test]
async fn an_agent_at_work_takes_the_instruction_when_it_is_done() {
    let yard = Yard::new(json!([client_tool("ask_client"), static_tool("look")])).await;
    let run = yard.say("call ask_client {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let due = plan(&yard, Some(&yard.space), "call look {}", None).await;
    assert_eq!(moved(&yard, &due).await.last_run, Some(run.clone()));
    // The call that waits is not closed by a plan.
    assert_eq!(yard.status(&run).await, RunStatus::WaitingTool);
    let call = yard.open_waits(&run).await[0].wait.call.clone();
    yard.submit(&run, &call, json!({"n": 1})).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(outcomes(&yard, &run).await.len(), 2);
    assert_eq!(all_runs(&yard).await.len(), 1);
}

/// A plan for every minute and an agent that waits for days: it is told once.
#[tokio::test]
async fn g25_occurrences_while_the_run_of_the_last_one_is_live_are_skipped() {
    let yard = Yard::new(json!([client_tool("ask_client")])).await;
    let run = yard.say("call ask_client {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let mut due = plan(&yard, Some(&yard.space), "hello", Some("* * * * *")).await;
    let first = moved(&yard, &due).await;
    assert_eq!((first.runs, &first.last_run, &first.error), (1, &Some(run.clone()), &None));
    for _ in 0..3 {
        let now = read(&yard, &due).await;
        let again = Plan { next_run_at: Some(Timestamp::from_millis(5)), ..now.clone() };
        let (stored, before) = (again.clone(), now.next_run_at);
        let write = yard.rt.store().write(move |tx| {
            Box::pin(async move { plans::replace(tx, &stored, PlanStatus::Pending, before).await })
        });
        assert!(write.await.unwrap());
        due = again;
        let skipped = moved(&yard, &due).await;
        assert_eq!((skipped.runs, skipped.status), (1, PlanStatus::Pending));
        assert!(skipped.error.unwrap().starts_with("Skipped"));
    }
    let queued = yard.kinds(&run).await.into_iter().filter(|kind| *kind == "MessageQueued").count();
    assert_eq!((queued, yard.messages().await.len()), (1, 3), "Ada, the agent, the plan");
}

#[tokio::test]
async fn a_plan_of_somebody_who_left_the_space_says_so_and_starts_nothing() {
    let yard = Yard::new(json!([])).await;
    let (tenant, space, ada) = (yard.tenant.clone(), yard.space.clone(), yard.ada.clone());
    let left = yard
        .rt
        .store()
        .write(move |tx| Box::pin(async move { spaces::remove_member(tx, &tenant, &space, &ada).await }));
    assert!(left.await.unwrap());
    let due = plan(&yard, Some(&yard.space), "hello", None).await;
    let failed = moved(&yard, &due).await;
    assert_eq!((failed.status, failed.runs), (PlanStatus::Failed, 0));
    assert!(failed.error.unwrap().ends_with("is not a member of this SmartSpace"));
    let daily = plan(&yard, Some(&yard.space), "hello", Some("0 9 * * *")).await;
    let kept = moved(&yard, &daily).await;
    assert_eq!((kept.status, kept.error.is_some()), (PlanStatus::Pending, true));
    assert_eq!(all_runs(&yard).await.len(), 0);
}

#[tokio::test]
async fn g25_the_model_makes_reads_and_cancels_plans() {
    let yard = Yard::new(json!([prebuilt("createPlan"), prebuilt("getPlan"), prebuilt("cancelPlan")])).await;
    let run: RunId = yard.say("call createPlan {\"instruction\":\"say hi\",\"cron\":\"0 9 * * 1\"}").await;
    yard.until(&run, RunStatus::Completed).await;
    let tenant = yard.tenant.clone();
    let (agent, ada) = (yard.bot.clone(), yard.ada.clone());
    let stored = yard.rt.store().read(move |tx| {
        Box::pin(async move {
            let plan = plans::list(tx, &tenant, Some(&ada), None, None, 10).await?.remove(0);
            assert_eq!(plan.agent, agent);
            Ok::<_, StoreError>(plan)
        })
    });
    let stored = stored.await.unwrap();
    assert_eq!(stored.space.as_ref(), Some(&yard.space));
    let run = yard.say(&format!("call cancelPlan {{\"id\":\"{}\"}}", stored.id)).await;
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(read(&yard, &stored).await.status, PlanStatus::Canceled);
    let run = yard.say("call createPlan {\"instruction\":\"x\",\"cron\":\"soon\"}").await;
    yard.until(&run, RunStatus::Completed).await;
    let told = format!("{:?}", outcomes(&yard, &run).await);
    assert!(told.contains("Invalid cron pattern"), "{told}");
}
