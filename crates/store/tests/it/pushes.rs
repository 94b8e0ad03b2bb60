//! Tasks: lists of them, and the addresses that hear of one.

use toolyard_protocol::run::RunStatus;
use toolyard_protocol::{RunId, TenantId, Timestamp};
use toolyard_store::push_configs::{self, PARCEL, PushConfig};
use toolyard_store::secrets::Sealed;
use toolyard_store::tasks::{self, Which};

use crate::cast::{self, owner};
use crate::home::{Home, tx};
use crate::line::Line;

fn config(run: &RunId, id: &str, url: &str) -> PushConfig {
    PushConfig {
        run: run.clone(),
        id: id.to_owned(),
        url: url.to_owned(),
        version: "1.0".to_owned(),
        owner: "secret".to_owned(),
        sealed: Sealed { bytes: vec![1, 2], key_id: "k".to_owned() },
        created_at: Timestamp::from_millis(5),
    }
}

pub(crate) async fn a_task_tells_its_own_addresses_once_and_no_others(home: &Home) {
    let (tenant, other) = (cast::tenant(), cast::other_tenant());
    let (run, another) = (RunId::mint(), RunId::mint());
    let put = async |tenant: &TenantId, config: PushConfig| {
        tx!(home, write, [tenant, config], |tx| push_configs::put(tx, &tenant, &config).await);
    };
    put(&tenant, config(&run, "a", "https://a.example")).await;
    put(&tenant, config(&run, "b", "https://b.example")).await;
    put(&tenant, config(&another, "a", "https://c.example")).await;
    put(&other, config(&run, "a", "https://d.example")).await;
    // The same name again is another form of the same address.
    put(&tenant, config(&run, "b", "https://e.example")).await;
    let urls = async |tenant: &TenantId, run: &RunId| {
        let found = tx!(home, read, [tenant, run], |tx| push_configs::list(tx, &tenant, &run).await);
        found.into_iter().map(|c| c.url).collect::<Vec<_>>()
    };
    assert_eq!(urls(&tenant, &run).await, ["https://a.example", "https://e.example"]);
    assert_eq!(urls(&other, &another).await, [] as [String; 0]);

    for only in [Some("b"), None, None] {
        tx!(home, write, [tenant, run], |tx| push_configs::announce(tx, &tenant, &run, 7, only).await);
    }
    tx!(home, write, [tenant, run], |tx| push_configs::announce(tx, &tenant, &run, 8, Some("b")).await);
    let mut taken = tx!(home, write, [], |tx| {
        let later = tx.now().await?.plus_millis(3_600_000);
        cast::take(tx, later, 10).await
    });
    taken.sort_by(|a, b| a.id.cmp(&b.id));
    let told: Vec<_> = taken.iter().map(|p| (p.tenant.clone(), p.id.clone(), p.kind.as_str())).collect();
    let expected =
        ["7:push:a", "7:push:b", "8:push:b"].map(|id| (tenant.clone(), format!("{run}:{id}"), PARCEL));
    assert_eq!(told, expected);

    let delete = async |tenant: &TenantId, id: &'static str| {
        tx!(home, write, [tenant, run], |tx| push_configs::delete(tx, &tenant, &run, id).await)
    };
    assert!(!delete(&other, "b").await, "another tenant's is not there");
    assert!(delete(&tenant, "b").await);
    assert!(!delete(&tenant, "b").await);
    let found = tx!(home, read, [tenant, run], |tx| push_configs::get(tx, &tenant, &run, "a").await);
    assert_eq!(found, Some(config(&run, "a", "https://a.example")));
}

pub(crate) async fn tasks_are_listed_by_their_last_change(home: &Home) {
    let tenant = cast::tenant();
    let running = Line::running(home, None, &owner("a")).await;
    let (parked, _) = Line::parked(home, None, &owner("a")).await;
    let queued = Line::begun(home, cast::new_run(&tenant, None), None).await;
    let agent = cast::agent_name();
    let all = Which {
        agent: &agent,
        of: None,
        space: None,
        status: None,
        credential: None,
        filtered: None,
        after: None,
    };
    let page = async |which: Which<'_>, behind: Option<(Timestamp, RunId)>, limit: u32| {
        let (agent, status, credential) = (which.agent.clone(), which.status, which.credential);
        let (filtered, after) = (which.filtered, which.after);
        tx!(home, read, [tenant, behind], |tx| {
            let which = Which { agent: &agent, of: None, space: None, status, credential, filtered, after };
            let count = tasks::count(tx, &tenant, which).await?;
            let rows = tasks::list(tx, &tenant, which, behind.as_ref(), limit).await?;
            Ok((count, rows.into_iter().map(|row| (row.updated_at, row.id)).collect::<Vec<_>>()))
        })
    };
    let (count, listed) = page(all, None, 10).await;
    assert_eq!((count, listed.len()), (3, 3));
    assert!(listed.is_sorted_by(|a, b| a > b), "{listed:?}");
    // Pages join without a gap or a repeat.
    let (_, first) = page(all, None, 2).await;
    let (count, rest) = page(all, first.last().cloned(), 2).await;
    assert_eq!(count, 3, "the count is of all pages");
    assert_eq!([first, rest].concat(), listed);
    let of = async |status, credential| {
        let (_, rows) = page(Which { status: Some(status), credential, ..all }, None, 10).await;
        rows.into_iter().map(|(_, id)| id).collect::<Vec<_>>()
    };
    assert_eq!(of(RunStatus::Running, None).await, std::slice::from_ref(&running.run.id));
    assert_eq!(of(RunStatus::Queued, None).await, std::slice::from_ref(&queued.run.id));
    assert_eq!(of(RunStatus::WaitingTool, Some(false)).await, std::slice::from_ref(&parked.run.id));
    assert_eq!(of(RunStatus::WaitingTool, Some(true)).await, []);
    assert_eq!(of(RunStatus::Failed, None).await, []);
    let newest = listed[0].0;
    assert_eq!(page(Which { after: Some(newest), ..all }, None, 10).await.0, 0);
}
