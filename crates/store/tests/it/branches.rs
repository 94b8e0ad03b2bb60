//! Branches of a conversation, and conversations by their clients' names.

use toolyard_protocol::message::Speaker;
use toolyard_protocol::{BranchId, EntityId, MessageId, RunId, SpaceId, TenantId};
use toolyard_store::compactions::{self, Compaction, Reader};
use toolyard_store::messages::{self, NewMessage};
use toolyard_store::spaces::{self, Space};
use toolyard_store::{StoreError, branches, runs, threads};

use crate::cast;
use crate::home::{Home, tx};
use crate::line::Line;
use crate::world::{census, with_space};

async fn post(home: &Home, space: &SpaceId, branch: &BranchId, text: &str) -> i64 {
    let tenant = cast::tenant();
    let message = NewMessage { branch: branch.clone(), ..cast::message(text) };
    tx!(home, write, [tenant, space, message], |tx| messages::insert(tx, &tenant, &space, message).await).seq
}

async fn fork(home: &Home, space: &SpaceId, from: &BranchId, at: i64) -> BranchId {
    let tenant = cast::tenant();
    tx!(home, write, [tenant, space, from], |tx| branches::fork(tx, &tenant, &space, &from, at).await)
}

async fn history(home: &Home, space: &SpaceId, branch: &BranchId, up_to: i64) -> Vec<i64> {
    let tenant = cast::tenant();
    let said = tx!(home, read, [tenant, space, branch], |tx| messages::history(
        tx, &tenant, &space, &branch, 0, up_to
    )
    .await);
    said.into_iter().map(|m| m.seq).collect()
}

pub(crate) async fn a_branch_has_what_its_parents_have_up_to_the_fork(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let main = BranchId::main();
    for text in ["1", "2", "3"] {
        post(home, &space, &main, text).await;
    }
    let edit = fork(home, &space, &main, 2).await;
    post(home, &space, &edit, "4").await;
    post(home, &space, &main, "5").await;
    post(home, &space, &edit, "6").await;
    let second = fork(home, &space, &edit, 4).await;
    post(home, &space, &second, "7").await;
    assert_eq!(history(home, &space, &main, 99).await, [1, 2, 3, 5]);
    assert_eq!(history(home, &space, &edit, 99).await, [1, 2, 4, 6]);
    assert_eq!(history(home, &space, &second, 99).await, [1, 2, 4, 7]);
    assert_eq!(history(home, &space, &second, 3).await, [1, 2]);
    // For whoever reads it later: the same, or nothing if a message is too long.
    for (longest, found) in [(1_000, Some(vec![1, 2, 4, 7])), (3, None)] {
        let unread = tx!(home, read, [tenant, space, second], |tx| messages::history_unread(
            tx,
            &tenant,
            &space,
            &second,
            (0, 99),
            longest
        )
        .await);
        let read = |all: Vec<messages::Unread>| all.iter().map(|m| m.read().unwrap().seq).collect::<Vec<_>>();
        assert_eq!(unread.map(read), found, "no message of more than {longest} bytes");
    }
    let now = tx!(home, read, [tenant, space], |tx| spaces::get(tx, &tenant, &space).await).unwrap();
    assert_eq!(now.branch, second, "the space goes on with its newest branch");
    let all =
        tx!(home, read, [tenant, space, second], |tx| messages::of_branch(tx, &tenant, &space, &second)
            .await);
    assert_eq!(all.iter().map(|m| m.seq).collect::<Vec<_>>(), [1, 2, 4, 7]);
    for (before, limit, found) in [(None, 3, vec![2, 4, 7]), (Some(4), 9, vec![1, 2]), (Some(7), 1, vec![4])]
    {
        let page = tx!(home, read, [tenant, space, second], |tx| messages::branch_page(
            tx, &tenant, &space, &second, before, limit
        )
        .await);
        assert_eq!(page.iter().map(|m| m.seq).collect::<Vec<_>>(), found);
    }
    let asked =
        tx!(home, read, [tenant, space, edit], |tx| messages::user_before(tx, &tenant, &space, &edit, 3)
            .await);
    assert_eq!(asked.unwrap().seq, 2);
}

pub(crate) async fn a_fork_before_a_fork_leaves_the_line_short(home: &Home) {
    let (tenant, space) = with_space(home).await;
    post(home, &space, &BranchId::main(), "1").await;
    let mut branch = BranchId::main();
    for _ in 0..5 {
        branch = fork(home, &space, &branch, 1).await;
        post(home, &space, &branch, "answer").await;
    }
    let chain =
        tx!(home, read, [tenant, space, branch], |tx| branches::chain(tx, &tenant, &space, &branch, 99)
            .await);
    assert_eq!(chain.len(), 2, "five tries at one answer lie side by side: {chain:?}");
    assert_eq!(history(home, &space, &branch, 99).await, [1, 6]);
}

pub(crate) async fn a_summary_holds_for_the_branches_that_come_after_it(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let main = BranchId::main();
    for text in ["1", "2", "3"] {
        post(home, &space, &main, text).await;
    }
    let (run, agent) = (RunId::mint(), EntityId::mint());
    for (up_to, summary) in [(1, "early"), (3, "late")] {
        let kept = Compaction { up_to, summary: summary.to_owned() };
        tx!(home, write, [tenant, space, main, run, agent, kept], |tx| {
            let reader = Reader { space: &space, branch: &main, agent: Some(&agent) };
            compactions::put(tx, &tenant, reader, &run, &kept).await
        });
    }
    let edit = fork(home, &space, &main, 2).await;
    let found = tx!(home, read, [tenant, space, edit, agent], |tx| {
        let reader = Reader { space: &space, branch: &edit, agent: Some(&agent) };
        compactions::latest(tx, &tenant, reader, 99).await
    });
    assert_eq!(found.unwrap().summary, "early", "the later one tells of what the branch does not have");
}

fn thread() -> Space {
    cast::space(&SpaceId::mint())
}

async fn begin(home: &Home, tenant: &TenantId, owner: &EntityId, name: &str) -> Result<SpaceId, StoreError> {
    let space = thread();
    let id = space.id.clone();
    let name = name.to_owned();
    tx!(home, try_write, [tenant, owner, name, space], |tx| threads::insert(
        tx, &tenant, &owner, &name, &space
    )
    .await)
    .map(|()| id)
}

pub(crate) async fn a_thread_is_found_by_its_owner_and_name_alone(home: &Home) {
    let (tenant, other) = (cast::tenant(), cast::other_tenant());
    let (anna, bert) = (EntityId::mint(), EntityId::mint());
    let annas = begin(home, &tenant, &anna, "chat a/b").await.unwrap();
    let berts = begin(home, &tenant, &bert, "chat a/b").await.unwrap();
    let far = begin(home, &other, &anna, "chat a/b").await.unwrap();
    let twice = begin(home, &tenant, &anna, "chat a/b").await;
    assert!(matches!(twice, Err(StoreError::Exists(_))), "{twice:?}");
    let find = async |tenant: &TenantId, owner: &EntityId, name: &'static str| {
        tx!(home, read, [tenant, owner], |tx| threads::find(tx, &tenant, &owner, name).await).map(|s| s.id)
    };
    assert_eq!(find(&tenant, &anna, "chat a/b").await, Some(annas.clone()));
    assert_eq!(find(&tenant, &bert, "chat a/b").await, Some(berts));
    assert_eq!(find(&other, &anna, "chat a/b").await, Some(far));
    assert_eq!(find(&tenant, &anna, "chat").await, None);
    let owner = tx!(home, read, [tenant, annas], |tx| threads::owner(tx, &tenant, &annas).await);
    assert_eq!(owner, Some((anna, "chat a/b".to_owned())));
}

pub(crate) async fn a_message_is_found_by_either_of_its_names(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let (_, elsewhere) = with_space(home).await;
    let message = cast::message("hello");
    let id = message.id.clone();
    tx!(home, write, [tenant, space, message], |tx| messages::insert(tx, &tenant, &space, message).await);
    let name = async |to: &MessageId| {
        tx!(home, write, [tenant, space, to], |tx| threads::name_message(tx, &tenant, &space, "u1", &to)
            .await);
    };
    name(&MessageId::mint()).await;
    let find = async |space: &SpaceId, name: &str| {
        let name = name.to_owned();
        tx!(home, read, [tenant, space, name], |tx| threads::message(tx, &tenant, &space, &name).await)
    };
    assert_eq!(find(&space, "u1").await, None, "a name of nothing");
    name(&id).await;
    assert_eq!(find(&space, "u1").await, Some(id.clone()));
    assert_eq!(find(&space, id.as_str()).await, Some(id.clone()));
    assert_eq!(find(&elsewhere, "u1").await, None);
    assert_eq!(find(&elsewhere, id.as_str()).await, None);
    let reply = NewMessage { speaker: Speaker::Assistant, run: Some(RunId::mint()), ..cast::message("hi") };
    tx!(home, write, [tenant, space, reply], |tx| messages::insert(tx, &tenant, &space, reply).await);
    let main = BranchId::main();
    let found =
        tx!(home, read, [tenant, space, main], |tx| messages::reply_after(tx, &tenant, &space, &main, 1)
            .await);
    assert_eq!(found.unwrap().seq, 2);
}

pub(crate) async fn a_seized_run_is_its_new_owners_alone(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let (line, _) = Line::parked(home, Some(&space), &cast::owner("a")).await;
    let (run, before, taker) = (line.run.id.clone(), line.row().await, cast::owner("b"));
    let epoch = tx!(home, write, [tenant, run, taker], |tx| runs::seize(tx, &tenant, &run, &taker).await);
    assert_eq!(epoch, Some(before.epoch + 1));
    assert_eq!(line.row().await.owner, Some(taker.token()));
    let other = cast::other_tenant();
    let nobody = tx!(home, write, [other, run, taker], |tx| runs::seize(tx, &other, &run, &taker).await);
    assert_eq!(nobody, None);
}

pub(crate) async fn a_deleted_space_takes_its_branches_and_names(home: &Home) {
    let before = census(home).await;
    let (tenant, space) = with_space(home).await;
    post(home, &space, &BranchId::main(), "1").await;
    fork(home, &space, &BranchId::main(), 1).await;
    let id = MessageId::mint();
    tx!(home, write, [tenant, space, id], |tx| threads::name_message(tx, &tenant, &space, "u1", &id).await);
    assert!(tx!(home, write, [tenant, space], |tx| spaces::delete(tx, &tenant, &space).await));
    let after = census(home).await;
    for ((table, count), (_, was)) in after.iter().zip(&before).filter(|((t, _), _)| *t != "tenants") {
        assert_eq!(count, was, "{table}");
    }
}
