//! Run rows: one live run per space and agent, lists and counts.

use tokio::task::JoinSet;
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::{EntityId, ErrorCode, RunId, SpaceId};
use toolyard_store::runs::{self, After, NewRun};
use toolyard_store::{StoreError, messages, spaces};

use crate::cast::{self, owner};
use crate::home::{Home, tx};
use crate::line::Line;
use crate::world::with_space;

fn run_of(space: &SpaceId, agent: &EntityId) -> NewRun {
    let mut run = cast::new_run(&cast::tenant(), Some(space));
    run.agent_entity = Some(agent.clone());
    run
}

async fn insert(home: &Home, run: &NewRun) -> Result<runs::RunRow, StoreError> {
    tx!(home, try_write, [run], |tx| runs::insert(tx, &run, None).await)
}

pub(crate) async fn a_stored_run_reads_back_as_it_was_inserted(home: &Home) {
    let (_, space) = with_space(home).await;
    for (owner, status) in [(None, RunStatus::Queued), (Some(owner("a")), RunStatus::Running)] {
        let run = run_of(&space, &EntityId::mint());
        let inserted = tx!(home, write, [run, owner], |tx| runs::insert(tx, &run, owner.as_ref()).await);
        assert_eq!(inserted.status, status);
        assert_eq!((inserted.last_seq, inserted.epoch), (0, 1));
        let (tenant, id) = (run.tenant.clone(), run.id.clone());
        let stored = tx!(home, read, [tenant, id], |tx| runs::get(tx, &tenant, &id).await);
        assert_eq!(stored, Some(inserted));
    }
}

pub(crate) async fn a_second_live_run_is_refused_and_changes_nothing(home: &Home) {
    let ((tenant, space), agent) = (with_space(home).await, EntityId::mint());
    let first = insert(home, &run_of(&space, &agent)).await.unwrap();

    // The refusal undoes what its transaction did before.
    let second = run_of(&space, &agent);
    let refused = tx!(home, try_write, [tenant, space, second], |tx| {
        messages::insert(tx, &tenant, &space, cast::message("again")).await?;
        runs::insert(tx, &second, None).await
    });
    assert!(matches!(refused, Err(StoreError::Exists(_))), "{refused:?}");
    let id = second.id.clone();
    let (stored, page, live, whole) = tx!(home, write, [tenant, space, agent, id], |tx| {
        Ok((
            runs::get(tx, &tenant, &id).await?,
            messages::page(tx, &tenant, &space, None, None, 10).await?,
            runs::lock_live(tx, &tenant, &space, &agent).await?,
            spaces::get(tx, &tenant, &space).await?,
        ))
    });
    assert_eq!(stored, None);
    assert_eq!(page, []);
    assert_eq!(live, Some(first));
    assert_eq!(whole.unwrap().last_pos, 0);
}

pub(crate) async fn other_spaces_agents_tenants_and_ended_runs_do_not_count(home: &Home) {
    let ((_, here), (_, there)) = (with_space(home).await, with_space(home).await);
    let agent = EntityId::mint();
    let node = owner("a");
    let line = Line::begun(home, run_of(&here, &agent), Some(&node)).await;

    insert(home, &run_of(&there, &agent)).await.unwrap();
    insert(home, &run_of(&here, &EntityId::mint())).await.unwrap();
    let mut foreign = run_of(&here, &agent);
    foreign.tenant = cast::other_tenant();
    insert(home, &foreign).await.unwrap();
    for _ in 0..2 {
        let mut nowhere = run_of(&here, &agent);
        nowhere.space = None;
        insert(home, &nowhere).await.unwrap();
    }
    assert!(insert(home, &run_of(&here, &agent)).await.is_err());
    line.append(&node, 1, 0, vec![cast::finished()], cast::completed()).await.unwrap();
    insert(home, &run_of(&here, &agent)).await.unwrap();
}

pub(crate) async fn of_many_parallel_runs_for_one_agent_one_is_born(home: &Home) {
    let ((_, space), agent) = (with_space(home).await, EntityId::mint());
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let (store, run) = (home.store.clone(), run_of(&space, &agent));
        tasks.spawn(async move {
            store.write(move |tx| Box::pin(async move { runs::insert(tx, &run, None).await })).await
        });
    }
    let answers: Vec<Result<_, StoreError>> = tasks.join_all().await;
    let refused = answers.iter().filter(|a| matches!(a, Err(StoreError::Exists(_)))).count();
    let born = answers.iter().filter(|a| a.is_ok()).count();
    assert_eq!((born, refused), (1, 19));
}

pub(crate) async fn runs_are_listed_newest_first_in_pages(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let node = owner("a");
    let mut born: Vec<RunId> = Vec::new();
    for i in 0..6 {
        let place = (i % 2 == 0).then_some(&space);
        let line = Line::begun(home, cast::new_run(&tenant, place), Some(&node)).await;
        if i >= 4 {
            line.append(&node, 1, 0, vec![cast::finished()], cast::completed()).await.unwrap();
        }
        born.push(line.run.id);
    }
    born.reverse();
    let list = async |space: Option<&SpaceId>, status, before: Option<&RunId>, limit| {
        let (space, before) = (space.cloned(), before.cloned());
        let rows = tx!(home, read, [tenant, space, before], |tx| runs::list(
            tx,
            &tenant,
            space.as_ref(),
            status,
            before.as_ref(),
            limit
        )
        .await);
        rows.into_iter().map(|r| r.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, None, None, 10).await, born);
    assert_eq!(list(None, None, None, 2).await, born[..2]);
    assert_eq!(list(None, None, Some(&born[1]), 2).await, born[2..4]);
    assert_eq!(list(Some(&space), None, None, 10).await, [born[1].clone(), born[3].clone(), born[5].clone()]);
    assert_eq!(list(None, Some(RunStatus::Completed), None, 10).await, born[..2]);
    let counts = tx!(home, read, [], |tx| runs::counts(tx).await);
    assert_eq!(counts, [("completed".to_owned(), 2), ("running".to_owned(), 4)]);
}

/// Row D16: what was isolated is shown.
pub(crate) async fn a_poisoned_run_is_found_by_its_error(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    Line::running(home, None, &node).await;
    let after =
        After { status: RunStatus::Failed, reason: None, release: true, error: Some(ErrorCode::Poisoned) };
    line.append(&node, 1, 2, vec![cast::finished()], after).await.unwrap();
    let found = tx!(home, read, [], |tx| runs::poisoned(tx, 10).await);
    assert_eq!(found, [line.row().await]);
    assert_eq!(found[0].error.as_deref(), Some("poisoned"));
    assert_eq!(found[0].status, RunStatus::Failed);
}
