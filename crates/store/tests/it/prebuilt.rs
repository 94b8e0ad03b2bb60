//! What prebuilt tools write: goals, memories, plans, notifications, documents.

use serde_json::json;
use toolyard_protocol::{
    DocumentId, EntityId, GoalId, MemoryId, NoticeId, PlanId, SpaceId, TenantId, Timestamp,
};
use toolyard_store::goals::{self, Goal};
use toolyard_store::inbox::{self, Notice};
use toolyard_store::knowledge::{self, Chunk, Document, DocumentStatus};
use toolyard_store::memories::{self, Asking, Memory, MemoryScope};
use toolyard_store::plans::{self, Plan, PlanStatus};
use toolyard_store::{entities, spaces};

use crate::cast;
use crate::home::{Home, START_MS, tx};
use crate::world::with_space;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(START_MS + ms)
}

pub(crate) fn goal(entity: &EntityId, priority: i64, ms: i64) -> Goal {
    Goal {
        id: GoalId::mint(),
        entity: entity.clone(),
        description: format!("goal {priority}"),
        priority,
        long_term: true,
        completed: false,
        metadata: Some(json!({"from": "a story"})),
        created_at: at(ms),
        updated_at: at(ms),
    }
}

pub(crate) fn memory(
    agent: &EntityId,
    writer: Option<&EntityId>,
    space: Option<&SpaceId>,
    scope: MemoryScope,
) -> Memory {
    Memory {
        id: MemoryId::mint(),
        agent: agent.clone(),
        writer: writer.cloned(),
        space: space.cloned(),
        scope,
        topic: "Café".to_owned(),
        content: "likes ÉCLAIRS".to_owned(),
        created_at: at(0),
        updated_at: at(0),
    }
}

pub(crate) fn plan(tenant: &TenantId, agent: &EntityId, creator: &EntityId, next: Timestamp) -> Plan {
    Plan {
        tenant: tenant.clone(),
        id: PlanId::mint(),
        agent: agent.clone(),
        creator: Some(creator.clone()),
        space: None,
        name: "Report".to_owned(),
        instruction: "Write the report".to_owned(),
        cron: Some("0 9 * * *".to_owned()),
        timezone: "UTC".to_owned(),
        scheduled_at: None,
        next_run_at: Some(next),
        last_run_at: None,
        last_run: None,
        runs: 0,
        status: PlanStatus::Pending,
        error: None,
        created_at: at(0),
        updated_at: at(0),
    }
}

pub(crate) fn notice(entity: &EntityId) -> Notice {
    Notice {
        id: NoticeId::mint(),
        entity: entity.clone(),
        title: "Done".to_owned(),
        body: "It is done".to_owned(),
        level: "info".to_owned(),
        data: Some(json!({"n": 1})),
        agent: Some(cast::agent_name()),
        space: None,
        run: None,
        read_at: None,
        created_at: at(0),
    }
}

pub(crate) fn document(space: Option<&SpaceId>, text: &str) -> Document {
    Document {
        id: DocumentId::mint(),
        space: space.cloned(),
        entity: None,
        title: "Handbook".to_owned(),
        media_type: "text/plain".to_owned(),
        bytes: i64::try_from(text.len()).unwrap(),
        status: DocumentStatus::Indexing,
        done_bytes: 0,
        chunks: 0,
        embedded: 0,
        model: None,
        error: None,
        created_at: at(0),
        updated_at: at(0),
    }
}

pub(crate) async fn goals_are_ordered_by_priority_then_age(home: &Home) {
    let (tenant, me, other) = (cast::tenant(), EntityId::mint(), EntityId::mint());
    let goals = [goal(&me, 1, 5), goal(&me, 7, 9), goal(&me, 7, 3), goal(&other, 9, 0)];
    let read = tx!(home, write, [tenant, me, goals], |tx| {
        for goal in &goals {
            goals::insert(tx, &tenant, goal).await?;
        }
        goals::of_entity(tx, &tenant, &me).await
    });
    assert_eq!(read, [goals[2].clone(), goals[1].clone(), goals[0].clone()]);
    // Another entity's name does not change a goal, whatever else is right.
    let stolen = Goal { entity: other.clone(), description: "stolen".to_owned(), ..goals[0].clone() };
    let changed = Goal { completed: true, metadata: None, updated_at: at(20), ..goals[0].clone() };
    let (refused, done, now) = tx!(home, write, [tenant, stolen, changed], |tx| Ok((
        goals::update(tx, &tenant, &stolen).await?,
        goals::update(tx, &tenant, &changed).await?,
        goals::get(tx, &tenant, &changed.id).await?
    )));
    assert_eq!((refused, done, now), (false, true, Some(changed)));
    let (first, rest) = tx!(home, read, [tenant, me], |tx| {
        let first = goals::list(tx, &tenant, Some(&me), None, 2).await?;
        let rest = goals::list(tx, &tenant, Some(&me), Some(&first[1].id), 2).await?;
        Ok((first.len(), rest.len()))
    });
    assert_eq!((first, rest), (2, 1));
}

/// Two runs that remember the same topic at once leave one memory.
pub(crate) async fn of_many_parallel_memories_of_one_topic_one_is_kept(home: &Home) {
    let tenant = cast::tenant();
    let [bot, ann, bob] = std::array::from_fn(|_| EntityId::mint());
    let den = SpaceId::mint();
    let write = async |writer: &EntityId, scope: MemoryScope, topic: &'static str| {
        let mut row = memory(&bot, Some(writer), Some(&den), scope);
        topic.clone_into(&mut row.topic);
        tx!(home, write, [tenant, row], |tx| memories::insert(tx, &tenant, &row).await)
    };
    let many = (0..8).map(|n| write(&ann, MemoryScope::User, if n % 2 == 0 { "Colour" } else { "colour" }));
    let written = futures::future::join_all(many).await;
    assert_eq!(written.into_iter().filter(|written| *written).count(), 1);
    // Other people, scopes and topics are others.
    assert!(write(&bob, MemoryScope::User, "colour").await);
    assert!(write(&ann, MemoryScope::Space, "colour").await);
    assert!(write(&ann, MemoryScope::User, "taste").await);
    assert!(!write(&ann, MemoryScope::Space, "COLOUR").await);
}

pub(crate) async fn x15_memories_are_read_only_by_those_they_are_for(home: &Home) {
    let tenant = cast::tenant();
    let [bot, other_bot, ann, bob] = std::array::from_fn(|_| EntityId::mint());
    let [den, hall] = std::array::from_fn(|_| SpaceId::mint());
    let rows = [
        memory(&bot, Some(&ann), Some(&den), MemoryScope::User),
        memory(&bot, Some(&ann), Some(&den), MemoryScope::Space),
        memory(&bot, None, None, MemoryScope::Agent),
        memory(&other_bot, Some(&ann), Some(&den), MemoryScope::User),
    ];
    tx!(home, write, [tenant, rows], |tx| {
        for row in &rows {
            memories::insert(tx, &tenant, row).await?;
        }
        Ok(())
    });
    let ids = |indexes: &[usize]| indexes.iter().map(|i| rows[*i].id.clone()).collect::<Vec<_>>();
    // Who asks, where, and which rows they get.
    let matrix = [
        (&bot, Some(&ann), Some(&den), ids(&[0, 1])),
        (&bot, Some(&ann), Some(&hall), ids(&[0])),
        (&bot, Some(&ann), None, ids(&[0])),
        (&bot, Some(&bob), Some(&den), ids(&[1])),
        (&bot, Some(&bob), Some(&hall), vec![]),
        (&bot, Some(&bob), None, vec![]),
        (&bot, None, Some(&den), ids(&[1])),
        (&bot, None, Some(&hall), vec![]),
        (&bot, None, None, ids(&[2])),
        (&other_bot, Some(&ann), Some(&hall), ids(&[3])),
        (&other_bot, Some(&bob), Some(&den), vec![]),
    ];
    for (agent, user, space, wanted) in matrix {
        let (agent, user, space) = (agent.clone(), user.cloned(), space.cloned());
        let mut found = tx!(home, read, [tenant, agent, user, space], |tx| {
            let asking = Asking { agent: &agent, user: user.as_ref(), space: space.as_ref() };
            memories::readable(tx, &tenant, asking, None, None, 50).await
        });
        found.sort_by(|a, b| a.id.cmp(&b.id));
        let found: Vec<_> = found.into_iter().map(|m| m.id).collect();
        assert_eq!(found, wanted, "{agent} for {user:?} in {space:?}");
    }
    // The case of letters is not the reader's business, and not only in ASCII.
    let by = |topic: Option<&'static str>, text: Option<&'static str>| {
        let (tenant, bot, ann) = (tenant.clone(), bot.clone(), ann.clone());
        home.read(move |tx| {
            Box::pin(async move {
                let asking = Asking { agent: &bot, user: Some(&ann), space: None };
                Ok(memories::readable(tx, &tenant, asking, topic, text, 50).await?.len())
            })
        })
    };
    assert_eq!(by(Some("CAFÉ"), None).await, 1);
    assert_eq!(by(None, Some("éclairs")).await, 1);
    assert_eq!(by(None, Some("%")).await, 0);
    assert_eq!(by(Some("tea"), None).await, 0);
    let own = tx!(home, read, [tenant, bot, ann, bob, hall], |tx| {
        let asking = |user| Asking { agent: &bot, user, space: Some(&hall) };
        Ok((
            memories::own(tx, &tenant, asking(Some(&ann)), MemoryScope::User, "café").await?.is_some(),
            memories::own(tx, &tenant, asking(Some(&ann)), MemoryScope::Space, "café").await?.is_some(),
            memories::own(tx, &tenant, asking(Some(&bob)), MemoryScope::User, "café").await?.is_some(),
            memories::count(tx, &tenant, &bot, Some(&ann)).await?,
        ))
    });
    assert_eq!(own, (true, false, false, 2));
}

pub(crate) async fn a_due_plan_is_moved_on_by_one_of_many(home: &Home) {
    let (tenant, bot, ann) = (cast::tenant(), EntityId::mint(), EntityId::mint());
    let past = tx!(home, read, [], |tx| Ok(Timestamp::from_millis(tx.now().await?.millis() - 5)));
    let (due, later) =
        (plan(&tenant, &bot, &ann, past), plan(&tenant, &bot, &ann, past.plus_millis(3_600_000)));
    let rows = tx!(home, write, [due, later], |tx| {
        plans::insert(tx, &due).await?;
        plans::insert(tx, &later).await?;
        Ok((plans::due(tx, 10).await?, plans::next_due(tx).await?))
    });
    assert_eq!(rows, (vec![due.clone()], Some(past)));
    let racers = (0..20).map(|n| {
        let mut next = due.clone();
        next.next_run_at = Some(past.plus_millis(60_000 + n));
        next.runs = 1;
        async move {
            tx!(home, write, [next], |tx| plans::replace(tx, &next, PlanStatus::Pending, Some(past)).await)
        }
    });
    let won = futures::future::join_all(racers).await.into_iter().filter(|won| *won).count();
    assert_eq!(won, 1);
    let canceled = Plan { status: PlanStatus::Canceled, next_run_at: None, ..later.clone() };
    let seen = tx!(home, write, [tenant, canceled, later, due, bot, ann], |tx| Ok((
        plans::replace(tx, &canceled, PlanStatus::Pending, later.next_run_at).await?,
        plans::replace(tx, &canceled, PlanStatus::Pending, later.next_run_at).await?,
        plans::due(tx, 10).await?.len(),
        plans::get(tx, &tenant, &due.id).await?.map(|p| p.runs),
        plans::count_pending(tx, &tenant, &bot, Some(&ann)).await?,
        plans::list(tx, &tenant, Some(&ann), Some(PlanStatus::Canceled), None, 10).await?,
    )));
    assert_eq!(seen, (true, false, 0, Some(1), 1, vec![canceled]));
}

pub(crate) async fn a_notification_is_written_once_and_marked_as_read(home: &Home) {
    let (tenant, ann) = (cast::tenant(), EntityId::mint());
    let (one, two) = (notice(&ann), notice(&ann));
    let again = Notice { title: "Twice".to_owned(), ..one.clone() };
    let unread = tx!(home, write, [tenant, one, two, again, ann], |tx| {
        inbox::put(tx, &tenant, &one).await?;
        inbox::put(tx, &tenant, &two).await?;
        inbox::put(tx, &tenant, &again).await?;
        inbox::mark(tx, &tenant, &two.id, Some(at(9))).await?;
        inbox::list(tx, &tenant, Some(&ann), true, None, 10).await
    });
    assert_eq!(unread, std::slice::from_ref(&one));
    let all =
        tx!(home, read, [tenant, ann], |tx| inbox::list(tx, &tenant, Some(&ann), false, None, 10).await);
    assert_eq!(all, [Notice { read_at: Some(at(9)), ..two }, one]);
}

pub(crate) async fn a_document_is_indexed_in_slices_and_found_by_its_words(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let text = "Refunds are paid within ten days.\n\nThe kitchen opens at nine.";
    let (all, own) = (document(None, text), document(Some(&space), text));
    tx!(home, write, [tenant, all, own, text], |tx| {
        knowledge::insert(tx, &tenant, &all, text).await?;
        knowledge::insert(tx, &tenant, &own, text).await
    });
    let pieces = [
        Chunk { start: 0, end: 33, text: "Refunds are paid within ten days.".to_owned() },
        Chunk { start: 35, end: 61, text: "The kitchen opens at nine.".to_owned() },
    ];
    for document in [all.clone(), own.clone()] {
        let first = vec![pieces[0].clone()];
        let (done, again) = tx!(home, write, [tenant, document, first], |tx| {
            let status = DocumentStatus::Indexing;
            let done = knowledge::add_chunks(tx, &tenant, &document, &first, 34, status).await?;
            // The same slice again, as a node does that comes too late.
            Ok((done, knowledge::add_chunks(tx, &tenant, &document, &first, 34, status).await?))
        });
        assert_eq!((done, again), (true, false));
        let second = vec![pieces[1].clone()];
        let end = i64::try_from(text.len()).unwrap();
        tx!(home, write, [tenant, document, second], |tx| {
            let (_, now) = knowledge::next_work(tx, DocumentStatus::Indexing).await?.unwrap();
            assert_eq!((now.id.clone(), now.done_bytes, now.chunks), (document.id.clone(), 34, 1));
            knowledge::add_chunks(tx, &tenant, &now, &second, end, DocumentStatus::Ready).await
        });
    }
    let search = |tenant: TenantId, space: Option<SpaceId>, words: &'static [&'static str]| {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        home.read(move |tx| {
            Box::pin(async move {
                let hits = knowledge::search(tx, &tenant, space.as_ref(), &words, 10).await?;
                Ok(hits.into_iter().map(|hit| (hit.document, hit.position, hit.text)).collect::<Vec<_>>())
            })
        })
    };
    let refund = |document: &Document| (document.id.clone(), 0, pieces[0].text.clone());
    // A word in another form is the same word, and words that are not there do no harm.
    let found = search(tenant.clone(), Some(space.clone()), &["what", "about", "refund", "policy"]).await;
    assert_eq!(found, [refund(&all), refund(&own)]);
    assert_eq!(search(tenant.clone(), None, &["refunds"]).await, [refund(&all)]);
    assert_eq!(search(tenant.clone(), Some(SpaceId::mint()), &["refunds"]).await, [refund(&all)]);
    assert_eq!(search(cast::other_tenant(), Some(space.clone()), &["refunds"]).await, []);
    assert_eq!(search(tenant.clone(), None, &["OR", "NEAR", "tenant"]).await, []);
    assert_eq!(search(tenant.clone(), None, &[]).await, []);

    tx!(home, write, [tenant, space, all], |tx| {
        spaces::delete(tx, &tenant, &space).await?;
        knowledge::delete(tx, &tenant, &all.id).await
    });
    assert_eq!(search(tenant.clone(), Some(space.clone()), &["refunds"]).await, []);
    let left = tx!(home, read, [], |tx| {
        tx.one("SELECT (SELECT count(*) FROM chunks) + (SELECT count(*) FROM document_texts)", &[], |r| {
            r.int(0)
        })
        .await
    });
    assert_eq!(left, Some(0));
}

pub(crate) async fn vectors_follow_the_model_that_makes_them(home: &Home) {
    let tenant = cast::tenant();
    let all = document(None, "one two");
    let pieces = vec![
        Chunk { start: 0, end: 3, text: "one".to_owned() },
        Chunk { start: 4, end: 7, text: "two".to_owned() },
    ];
    let status = || {
        let (tenant, id) = (tenant.clone(), all.id.clone());
        let read = home.read(move |tx| Box::pin(async move { knowledge::get(tx, &tenant, &id).await }));
        async move {
            let document = read.await.unwrap();
            (document.status, document.embedded, document.model)
        }
    };
    tx!(home, write, [tenant, all, pieces], |tx| {
        knowledge::insert(tx, &tenant, &all, "one two").await?;
        knowledge::add_chunks(tx, &tenant, &all, &pieces, 7, DocumentStatus::Embedding).await?;
        let bare = knowledge::without_vector(tx, &tenant, &all.id, "m1", 1).await?;
        knowledge::put_vector(tx, &tenant, bare[0].0, "m1", &[1, 2, 3, 4]).await?;
        knowledge::count_vectors(tx, &tenant, &all.id, "m1").await
    });
    assert_eq!(status().await, (DocumentStatus::Embedding, 1, Some("m1".to_owned())));
    let vectors = tx!(home, write, [tenant, all], |tx| {
        let bare = knowledge::without_vector(tx, &tenant, &all.id, "m1", 9).await?;
        knowledge::put_vector(tx, &tenant, bare[0].0, "m1", &[5, 6, 7, 8]).await?;
        knowledge::count_vectors(tx, &tenant, &all.id, "m1").await?;
        knowledge::vectors(tx, &tenant, None, "m1", 0, 10).await
    });
    assert_eq!(vectors.iter().map(|(_, v)| v.as_slice()).collect::<Vec<_>>(), [[1, 2, 3, 4], [5, 6, 7, 8]]);
    assert_eq!(status().await, (DocumentStatus::Ready, 2, Some("m1".to_owned())));
    tx!(home, write, [], |tx| knowledge::choose_model(tx, Some("m1")).await);
    assert_eq!(status().await.0, DocumentStatus::Ready);
    tx!(home, write, [], |tx| knowledge::choose_model(tx, Some("m2")).await);
    assert_eq!(status().await, (DocumentStatus::Embedding, 0, Some("m1".to_owned())));
    tx!(home, write, [], |tx| knowledge::choose_model(tx, None).await);
    assert_eq!(status().await.0, DocumentStatus::Ready);
}

pub(crate) async fn g22_a_deleted_entity_takes_what_was_kept_of_it_and_for_it(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let [bot, ann, bob] = std::array::from_fn(|_| EntityId::mint());
    let count = tx!(home, write, [tenant, space, bot, ann, bob], |tx| {
        for id in [&bot, &ann, &bob] {
            let entity = entities::Entity {
                id: id.clone(),
                kind: entities::EntityKind::System,
                external_id: None,
                display_name: None,
                agent: None,
                metadata: None,
                created_at: at(0),
            };
            entities::insert(tx, &tenant, &entity).await?;
        }
        goals::insert(tx, &tenant, &goal(&bot, 1, 0)).await?;
        for writer in [&ann, &bob] {
            memories::insert(tx, &tenant, &memory(&bot, Some(writer), Some(&space), MemoryScope::User))
                .await?;
            plans::insert(tx, &plan(&tenant, &bot, writer, at(1 << 40))).await?;
            inbox::put(tx, &tenant, &notice(writer)).await?;
        }
        entities::delete(tx, &tenant, &ann).await
    });
    assert!(count);
    let left = |tenant: TenantId| {
        home.read(move |tx| {
            Box::pin(async move {
                Ok((
                    goals::list(tx, &tenant, None, None, 10).await?.len(),
                    memories::list(tx, &tenant, None, None, None, None, 10).await?.len(),
                    plans::list(tx, &tenant, None, None, None, 10).await?.len(),
                    inbox::list(tx, &tenant, None, false, None, 10).await?.len(),
                ))
            })
        })
    };
    assert_eq!(left(tenant.clone()).await, (1, 1, 1, 1));
    tx!(home, write, [tenant, bot], |tx| entities::delete(tx, &tenant, &bot).await);
    assert_eq!(left(tenant.clone()).await, (0, 0, 0, 1));
}
