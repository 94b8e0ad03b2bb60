//! Spaces, members, messages and entities.

use serde_json::json;
use toolyard_protocol::message::{Message, Part, Speaker};
use toolyard_protocol::principal::Role;
use toolyard_protocol::{AgentName, BranchId, EntityId, MessageId, RunId, SpaceId, TenantId, Timestamp};
use toolyard_store::entities::{self, Entity, EntityKind};
use toolyard_store::messages::{self, NewMessage};
use toolyard_store::{StoreError, spaces};

use crate::cast;
use crate::home::{Home, START_MS, tx};
use crate::world::with_space;

async fn post(home: &Home, space: &SpaceId, message: &NewMessage) -> Message {
    let tenant = cast::tenant();
    tx!(home, write, [tenant, space, message], |tx| messages::insert(tx, &tenant, &space, message).await)
}

fn turn(run: &RunId, text: &str) -> NewMessage {
    NewMessage {
        id: MessageId::of_turn(run, 0),
        speaker: Speaker::Assistant,
        run: Some(run.clone()),
        ..cast::message(text)
    }
}

pub(crate) async fn a_message_reads_back_as_it_was_written(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let new = NewMessage {
        id: MessageId::mint(),
        speaker: Speaker::System,
        entity: Some(EntityId::mint()),
        run: Some(RunId::mint()),
        branch: BranchId::mint(),
        parts: vec![
            Part::text("a \u{0} b \u{1F600}"),
            Part::Data { name: "card".to_owned(), value: json!({ "n": 1.5 }) },
        ],
        show_reasoning: true,
        metadata: Some(json!({ "from": "mail" })),
    };
    let written = post(home, &space, &new).await;
    assert_eq!(written.parts, new.parts);
    assert_eq!((written.seq, &written.space), (1, &space));
    let id = new.id.clone();
    let read = tx!(home, read, [tenant, id], |tx| messages::get(tx, &tenant, &id).await);
    assert_eq!(read, Some(written));
}

pub(crate) async fn a_message_id_is_taken_once(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let new = cast::message("one");
    post(home, &space, &new).await;
    let refused =
        tx!(home, try_write, [tenant, space, new], |tx| messages::insert(tx, &tenant, &space, new).await);
    assert!(matches!(refused, Err(StoreError::Exists(_))), "{refused:?}");
    assert_eq!(post(home, &space, &cast::message("two")).await.seq, 2, "a refusal takes no position");
}

/// One assistant message per turn: it grows with each step and keeps its place.
pub(crate) async fn a_revised_message_keeps_its_place(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let run = RunId::mint();
    let revise = async |text: &str| {
        let message = turn(&run, text);
        tx!(home, write, [tenant, message], |tx| messages::revise(tx, &tenant, &message.id, &message.parts)
            .await)
    };
    post(home, &space, &cast::message("question")).await;
    assert!(!revise("too early").await, "nothing to revise yet");
    post(home, &space, &turn(&run, "thinking")).await;
    post(home, &space, &cast::message("hurry")).await;
    assert!(revise("the answer").await);
    let page =
        tx!(home, read, [tenant, space], |tx| messages::page(tx, &tenant, &space, None, None, 10).await);
    let told: Vec<(i64, Vec<Part>)> = page.into_iter().map(|m| (m.seq, m.parts)).collect();
    assert_eq!(
        told,
        [
            (1, vec![Part::text("question")]),
            (2, vec![Part::text("the answer")]),
            (3, vec![Part::text("hurry")])
        ]
    );
    let stored = tx!(home, read, [tenant, space], |tx| spaces::get(tx, &tenant, &space).await);
    assert_eq!(stored.unwrap().last_pos, 3);
}

pub(crate) async fn pages_go_up_from_a_position_and_down_from_one(home: &Home) {
    let (tenant, space) = with_space(home).await;
    for n in 1..=7 {
        post(home, &space, &cast::message(&n.to_string())).await;
    }
    let page = async |after: Option<i64>, before: Option<i64>, limit: u32| {
        let rows =
            tx!(home, read, [tenant, space], |tx| messages::page(tx, &tenant, &space, after, before, limit)
                .await);
        rows.into_iter().map(|m| m.seq).collect::<Vec<_>>()
    };
    assert_eq!(page(None, None, 3).await, [5, 6, 7], "the newest");
    assert_eq!(page(None, Some(5), 3).await, [2, 3, 4]);
    assert_eq!(page(Some(0), None, 3).await, [1, 2, 3]);
    assert_eq!(page(Some(3), None, 10).await, [4, 5, 6, 7]);
    assert_eq!(page(Some(3), Some(6), 10).await, [4, 5]);
    assert_eq!(page(Some(7), None, 10).await, Vec::<i64>::new());
}

pub(crate) async fn history_is_one_branch_up_to_a_position(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let edit = BranchId::mint();
    for n in 1..=6 {
        let mut message = cast::message(&n.to_string());
        if n % 2 == 0 {
            message.branch = edit.clone();
        }
        post(home, &space, &message).await;
    }
    let history = async |branch: &BranchId, up_to: i64| {
        let rows = tx!(home, read, [tenant, space, branch], |tx| messages::history(
            tx, &tenant, &space, &branch, 0, up_to
        )
        .await);
        rows.into_iter().map(|m| m.seq).collect::<Vec<_>>()
    };
    assert_eq!(history(&BranchId::main(), 6).await, [1, 3, 5]);
    assert_eq!(history(&BranchId::main(), 3).await, [1, 3]);
    assert_eq!(history(&edit, 5).await, [2, 4]);
    assert_eq!(history(&BranchId::mint(), 6).await, Vec::<i64>::new());
}

pub(crate) async fn spaces_are_listed_newest_first_and_by_member(home: &Home) {
    let tenant = cast::tenant();
    let (anna, bert) = (EntityId::mint(), EntityId::mint());
    let mut ids = Vec::new();
    for i in 0..4 {
        let (_, space) = with_space(home).await;
        let entity = if i % 2 == 0 { &anna } else { &bert };
        tx!(home, write, [tenant, space, entity], |tx| spaces::put_member(
            tx,
            &tenant,
            &space,
            &entity,
            Role::Member
        )
        .await);
        ids.push(space);
    }
    ids.reverse();
    let list = async |member: Option<&EntityId>, before: Option<&SpaceId>, limit: u32| {
        let (member, before) = (member.cloned(), before.cloned());
        let rows = tx!(home, read, [tenant, member, before], |tx| spaces::list(
            tx,
            &tenant,
            member.as_ref(),
            before.as_ref(),
            limit
        )
        .await);
        rows.into_iter().map(|s| s.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, None, 10).await, ids);
    assert_eq!(list(None, Some(&ids[0]), 2).await, ids[1..3]);
    assert_eq!(list(Some(&bert), None, 10).await, [ids[0].clone(), ids[2].clone()]);
    assert_eq!(list(Some(&EntityId::mint()), None, 10).await, []);
}

pub(crate) async fn a_space_changes_only_what_people_may_change(home: &Home) {
    let (tenant, space) = with_space(home).await;
    post(home, &space, &cast::message("one")).await;
    let mut wanted = cast::space(&space);
    assert_eq!(
        tx!(home, read, [tenant, space], |tx| spaces::get(tx, &tenant, &space).await).map(|s| s.metadata),
        Some(wanted.metadata.clone())
    );
    wanted.name = None;
    wanted.description = Some("Recipes".to_owned());
    wanted.metadata = None;
    wanted.show_reasoning = false;
    wanted.last_pos = 77;
    let changed = tx!(home, write, [tenant, wanted], |tx| spaces::update(tx, &tenant, &wanted).await);
    assert!(changed);
    wanted.last_pos = 1;
    let stored = tx!(home, read, [tenant, space], |tx| spaces::get(tx, &tenant, &space).await);
    assert_eq!(stored, Some(wanted.clone()), "the order is not theirs");
    wanted.id = SpaceId::mint();
    let changed = tx!(home, write, [tenant, wanted], |tx| spaces::update(tx, &tenant, &wanted).await);
    assert!(!changed, "an unknown space is not made");
}

pub(crate) async fn members_join_change_role_and_leave(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let entity = EntityId::mint();
    let role = async || {
        tx!(home, read, [tenant, space, entity], |tx| spaces::role(tx, &tenant, &space, &entity).await)
    };
    assert_eq!(role().await, None);
    for wanted in [Role::Member, Role::Admin, Role::Member] {
        tx!(home, write, [tenant, space, entity], |tx| spaces::put_member(
            tx, &tenant, &space, &entity, wanted
        )
        .await);
        assert_eq!(role().await, Some(wanted));
    }
    let members = tx!(home, read, [tenant, space], |tx| spaces::members(tx, &tenant, &space).await);
    assert_eq!(members.len(), 1);
    assert_eq!(members[0].entity, entity);
    for expected in [true, false] {
        let removed = tx!(home, write, [tenant, space, entity], |tx| {
            spaces::remove_member(tx, &tenant, &space, &entity).await
        });
        assert_eq!(removed, expected);
    }
    assert_eq!(role().await, None);
}

pub(crate) async fn agents_of_a_space_are_members_that_play_one(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let (_, elsewhere) = with_space(home).await;
    let mut nameless = entity(EntityKind::Agent, None);
    nameless.agent = None;
    let cast = [entity(EntityKind::Agent, None), entity(EntityKind::Human, None), nameless];
    let absent = entity(EntityKind::Agent, None);
    for (entity, space) in cast.iter().map(|e| (e, &space)).chain([(&absent, &elsewhere)]) {
        tx!(home, write, [tenant, space, entity], |tx| {
            entities::insert(tx, &tenant, &entity).await?;
            spaces::put_member(tx, &tenant, &space, &entity.id, Role::Member).await
        });
    }
    let found = tx!(home, read, [tenant, space], |tx| spaces::agents_in(tx, &tenant, &space).await);
    let mut expected = [(cast[0].id.clone(), cast[0].agent.clone()), (cast[2].id.clone(), None)];
    expected.sort();
    assert_eq!(found, expected);
}

fn entity(kind: EntityKind, external: Option<&str>) -> Entity {
    Entity {
        id: EntityId::mint(),
        kind,
        external_id: external.map(str::to_owned),
        display_name: Some("Anna".to_owned()),
        agent: (kind == EntityKind::Agent).then(|| AgentName::parse("assistant").unwrap()),
        metadata: Some(json!({ "team": 3 })),
        created_at: Timestamp::from_millis(START_MS),
    }
}

pub(crate) async fn an_external_id_names_one_entity_of_a_tenant(home: &Home) {
    let (tenant, other) = (cast::tenant(), cast::other_tenant());
    let insert = async |tenant: &TenantId, entity: &Entity| {
        tx!(home, try_write, [tenant, entity], |tx| entities::insert(tx, &tenant, &entity).await)
    };
    let anna = entity(EntityKind::Human, Some("user-1"));
    insert(&tenant, &anna).await.unwrap();
    let twin = entity(EntityKind::Human, Some("user-1"));
    let refused = insert(&tenant, &twin).await;
    assert!(matches!(refused, Err(StoreError::Exists(_))), "{refused:?}");
    insert(&other, &twin).await.unwrap();
    // Nobody's name is not a name: several may have none.
    insert(&tenant, &entity(EntityKind::System, None)).await.unwrap();
    insert(&tenant, &entity(EntityKind::System, None)).await.unwrap();
    let found = async |tenant: &TenantId| {
        tx!(home, read, [tenant], |tx| entities::by_external(tx, &tenant, "user-1").await)
    };
    assert_eq!(found(&tenant).await, Some(anna));
    assert_eq!(found(&other).await, Some(twin));
}

pub(crate) async fn entities_are_changed_and_listed_by_kind(home: &Home) {
    let tenant = cast::tenant();
    let mut all = vec![
        entity(EntityKind::Human, Some("user-1")),
        entity(EntityKind::Agent, None),
        entity(EntityKind::Human, None),
    ];
    for entity in &all {
        tx!(home, write, [tenant, entity], |tx| entities::insert(tx, &tenant, &entity).await);
    }
    all[0].display_name = None;
    all[0].external_id = Some("user-2".to_owned());
    all[0].metadata = None;
    let changed = all[0].clone();
    let answer = tx!(home, write, [tenant, changed], |tx| entities::update(tx, &tenant, &changed).await);
    assert!(answer);
    all.reverse();
    let list = async |kind, before: Option<EntityId>, limit| {
        tx!(home, read, [tenant, before], |tx| entities::list(tx, &tenant, kind, before.as_ref(), limit)
            .await)
    };
    assert_eq!(list(None, None, 10).await, all);
    assert_eq!(list(None, Some(all[0].id.clone()), 1).await, all[1..2]);
    assert_eq!(list(Some(EntityKind::Agent), None, 10).await, all[1..2]);
    let stranger = entity(EntityKind::Human, None);
    let answer = tx!(home, write, [tenant, stranger], |tx| entities::update(tx, &tenant, &stranger).await);
    assert!(!answer);
}
