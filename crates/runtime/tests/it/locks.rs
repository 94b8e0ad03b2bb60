//! Everybody locks in one order: runs, then their space. Two that did it in two
//! orders would wait for each other, and the database would end one of them.

use serde_json::json;
use tokio::sync::oneshot;
use toolyard_protocol::ErrorCode;
use toolyard_protocol::run::RunStatus;
use toolyard_runtime::CreateRun;
use toolyard_store::{StoreError, runs, spaces};

use crate::yard::{Yard, client_tool};

#[tokio::test]
async fn d3_who_starts_a_run_waits_for_a_live_one_without_holding_the_space() {
    let yard = Yard::on_postgres(json!([client_tool("ask")])).await;
    let run = yard.say("call ask {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let ((held, is_held), (go, may_go)) = (oneshot::channel(), oneshot::channel());
    let (tenant, space, bot) = (yard.tenant.clone(), yard.space.clone(), yard.bot.clone());
    let holding = yard.rt.store().write::<_, StoreError, _>(move |tx| {
        Box::pin(async move {
            let live = runs::lock_live(tx, &tenant, &space, &bot).await?;
            held.send(live.is_some()).unwrap();
            may_go.await.unwrap();
            spaces::lock(tx, &tenant, &space).await
        })
    });
    let create = CreateRun {
        trace: None,
        by: yard.secret(),
        space: yard.space.clone(),
        agent_entity: Some(yard.bot.clone()),
        agent: None,
        triggered_by: Some(yard.ada.clone()),
        metadata: None,
        model: None,
    };
    let creating = async {
        assert!(is_held.await.unwrap());
        yard.rt.create_run(create, None).await
    };
    let watching = async {
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        loop {
            let seen = yard.rt.store().read::<_, StoreError, _>(move |tx| {
                Box::pin(async move { tx.one(waits, &[], |row| row.int(0)).await })
            });
            if seen.await.unwrap().unwrap() > 0 {
                return go.send(()).unwrap();
            }
            tokio::task::yield_now().await;
        }
    };
    let (locked, created, ()) = tokio::join!(holding, creating, watching);
    assert!(locked.unwrap(), "nobody else held the space");
    assert_eq!(created.unwrap_err().code, ErrorCode::RunBusy);
}
